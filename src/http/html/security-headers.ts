// The security headers of the console: pages load nothing from other hosts, no site can frame them, and no inline
// script or style runs, except for the inline styles of the reference.

const DIRECTIVES = {
  'default-src': "'none'",
  'script-src': "'self'",
  'style-src': "'self'",
  'img-src': "'self'",
  'form-action': "'self'",
  'base-uri': "'none'",
  'frame-ancestors': "'none'",
}

/** The headers of every response, beside those of send.ts; a page may send another Content-Security-Policy. */
export const SECURITY_HEADERS = {
  'Content-Security-Policy': policy(DIRECTIVES),
  'X-Frame-Options': 'DENY',
  // The address of a link has its token, and proxies log the Referer. With no-referrer, forms would be sent with `Origin: null`.
  'Referrer-Policy': 'strict-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), geolocation=(), microphone=()',
}

/** Lets scripts ask for pages: whether the first request with a new key has arrived, the list after a step, an animal that is added. */
export const FETCHING_POLICY = policy({ ...DIRECTIVES, 'connect-src': "'self'" })

/** Lets the reference use inline styles, and call the API at the base addresses that it lists. */
export function referencePolicy(baseUrls: readonly (string | undefined)[]): string {
  const origins = baseUrls.flatMap((url) => (url === undefined ? [] : [new URL(url).origin]))
  return policy({
    ...DIRECTIVES,
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
