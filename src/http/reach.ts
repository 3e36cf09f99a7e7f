// How the service can be reached, and what follows: whether sign-up is open by default, and which Host headers the console answers.
// At home means reachable from its own machine alone, as on a developer's.
import { type AddressInfo, BlockList, isIP, isIPv6 } from 'node:net'
import type { Config } from '../config.ts'

const LOOPBACK = new BlockList()
LOOPBACK.addSubnet('127.0.0.0', 8)
LOOPBACK.addAddress('::1', 'ipv6')

/** How the service can be reached, judged by the address that it really listens on. */
export interface Reach {
  atHome: boolean
  /** As it is set; unset, open only at home, and not in production. */
  signup: NonNullable<Config['signup']>
}

type ReachSettings = Pick<Config, 'environment' | 'baseUrl' | 'stagingBaseUrl' | 'signup' | 'trustProxy'>

/** `bound` is what `server.address()` returns. A Unix socket is a proxy's way in, so it is not at home. */
export function reachOf(config: ReachSettings, bound: AddressInfo | string | null): Reach {
  const { environment, baseUrl, stagingBaseUrl, signup, trustProxy } = config
  const isPublic = baseUrl !== undefined || stagingBaseUrl !== undefined || trustProxy !== false
  const atHome = !isPublic && typeof bound === 'object' && bound !== null && isLoopback(bound.address)
  return { atHome, signup: signup ?? (atHome && environment !== 'production' ? 'open' : 'closed') }
}

function isLoopback(address: string): boolean {
  return LOOPBACK.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')
}

/**
 * Whether a Host header leads to the console of a service at home: an IP address, localhost or a name below it, with any port.
 * DNS rebinding lets another site's page send requests here under that site's own name, but never under these.
 */
export function isOwnName(host: string): boolean {
  const [, name = ''] = /^(\[[^\]]*\]|[^:]*)(?::[0-9]*)?$/.exec(host) ?? []
  return isIP(name.replace(/^\[(.*)\]$/, '$1')) > 0 || /^(?:[a-z0-9-]+\.)*localhost\.?$/i.test(name)
}
