// Where programs look for the certificates of the authorities that they trust.

/** Of Debian and Alpine, of Fedora, and of BSD and OpenSSL itself. */
export const bundlePaths = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/cert.pem',
] as const

/** Each names a file that a library or a program reads instead of, or (Node) beside, its own. */
export const bundleVariables = [
  'SSL_CERT_FILE',
  'NODE_EXTRA_CA_CERTS',
  'REQUESTS_CA_BUNDLE',
  'CURL_CA_BUNDLE',
  'GIT_SSL_CAINFO',
  'PIP_CERT',
  'AWS_CA_BUNDLE',
  'CARGO_HTTP_CAINFO',
  'DENO_CERT',
] as const
