// Which Host headers lead to the console of a service at home. DNS rebinding lets another site's page send requests here
// under that site's own name, but never under an IP address or localhost.
import { isIP } from 'node:net'

/** Accepts an IP address, localhost or a name below it, with any port. */
export function isOwnName(host: string): boolean {
  const [, name = ''] = /^(\[[^\]]*\]|[^:]*)(?::[0-9]*)?$/.exec(host) ?? []
  return isIP(name.replace(/^\[(.*)\]$/, '$1')) > 0 || /^(?:[a-z0-9-]+\.)*localhost\.?$/i.test(name)
}
