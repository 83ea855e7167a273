"""Text generators behind one protocol, one file each.

openai_compatible    any server with the OpenAI chat protocol
transformers_local   a Hugging Face causal or encoder-decoder model in this process
echo                 no model at all, for tests and dry runs
"""
