// Starts the reference on our document: it contacts no other host, and a pasted key stays in the page.
const reference = document.querySelector('#reference')
reference.replaceChildren()

/** Names its copy buttons for screen readers. */
new MutationObserver(() => {
  for (const button of reference.querySelectorAll('button[class*="copy-button"]:not([aria-label])')) {
    button.setAttribute('aria-label', 'Copy')
  }
}).observe(reference, { childList: true, subtree: true })

Scalar.createApiReference('#reference', {
  url: '/openapi.json',
  withDefaultFonts: false,
  telemetry: false,
  persistAuth: false,
  showDeveloperTools: 'never',
  hideClientButton: true,
  documentDownloadType: 'json',
  agent: { disabled: true },
  mcp: { disabled: true },
  authentication: { preferredSecurityScheme: 'apiKey' },
  defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
})
