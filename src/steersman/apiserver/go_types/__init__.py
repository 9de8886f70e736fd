"""Go types: the types into which kube-apiserver decodes JSON, and the decoding of trees into them, with Go's messages."""
