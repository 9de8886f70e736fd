"""Whether the schema of a CustomResourceDefinition is structural and valid, in kube-apiserver's words. Pure."""
