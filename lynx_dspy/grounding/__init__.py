"""What a program may know before it writes: schema, links, documents, dialect (paper, III-A)."""
