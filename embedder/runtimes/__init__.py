"""Back-ends that run an encoder: OpenVINO on CPUs, torch everywhere."""
