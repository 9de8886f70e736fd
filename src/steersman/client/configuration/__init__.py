"""Where the server is and who the user is: kubeconfig files, the service account of a Pod, and `Config`, which both become."""
