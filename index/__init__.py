"""Documents -> passages -> catalogue (SQLite), vector snapshots (FAISS) and lexical index (FTS5)."""
