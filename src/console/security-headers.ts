// Security headers: nothing is loaded from other hosts, no frame around the page, no inline script or style.

const OURS = {
  'default-src': "'none'",
  'script-src': "'self'",
  'style-src': "'self'",
  'img-src': "'self'",
  'form-action': "'self'",
  'base-uri': "'none'",
  'frame-ancestors': "'none'",
}

/** On every response of the console. */
export const SECURITY_HEADERS = {
  'Content-Security-Policy': policy(OURS),
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), geolocation=(), microphone=()',
}

/** The page of a new key asks us whether its first request has arrived. */
export const POLLING_POLICY = policy({ ...OURS, 'connect-src': "'self'" })

/** The reference uses inline styles, and calls the API at the base addresses that it lists. */
export function referencePolicy(baseUrls: readonly (string | undefined)[]): string {
  const origins = baseUrls.flatMap((url) => (url === undefined ? [] : [new URL(url).origin]))
  return policy({
    ...OURS,
    'style-src': "'self' 'unsafe-inline'",
    'img-src': "'self' data: blob:",
    'font-src': "'self' data:",
    'connect-src': ["'self'", ...new Set(origins)].join(' '),
  })
}

function policy(directives: Record<string, string>): string {
  return Object.entries(directives)
    .map(([name, value]) => `${name} ${value}`)
    .join('; ')
}
