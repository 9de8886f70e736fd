"""The Pod Security Standards: which privileges the Pods of a namespace may use.

Guarantees
- The labels of the namespace choose a level and its version, for rejections (``enforce``) and for warnings (``warn``).
- The decisions and messages are those of kube-apiserver.
- A namespace without such labels costs one search in its stored bytes.
"""

from steersman.apiserver.admission.pod_security.plugin import PodSecurity as PodSecurity
