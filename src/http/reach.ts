// Decides from where the service can be reached, and so whether sign-up is open by default and which Host headers the console
// answers. "At home" means reachable only from its own machine, such as a developer's.
import { type AddressInfo, BlockList, isIP, isIPv6 } from 'node:net'
import type { Config } from '../config.ts'
import { ALLOWED } from '../contract/environments.ts'

const LOOPBACK = new BlockList()
LOOPBACK.addSubnet('127.0.0.0', 8)
LOOPBACK.addAddress('::1', 'ipv6')

/** From where the service can be reached, by the address that it actually listens on. */
export interface Reach {
  atHome: boolean
  /** The setting. Its default is open at home, except in production, and closed otherwise. */
  signup: NonNullable<Config['signup']>
}

type ReachSettings = Pick<Config, 'environment' | 'baseUrl' | 'stagingBaseUrl' | 'signup' | 'trustProxy'>

/** `bound` is the result of `server.address()`. A Unix socket is not at home, because a proxy forwards requests to it. */
export function reachOf(config: ReachSettings, bound: AddressInfo | string | null): Reach {
  const { environment, baseUrl, stagingBaseUrl, signup, trustProxy } = config
  const isPublic = baseUrl !== undefined || stagingBaseUrl !== undefined || trustProxy !== false
  const atHome = !isPublic && typeof bound === 'object' && bound !== null && isLoopback(bound.address)
  return { atHome, signup: signup ?? (atHome && ALLOWED.signUpAtHome[environment] ? 'open' : 'closed') }
}

export function isLoopback(address: string): boolean {
  return LOOPBACK.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')
}

/**
 * Returns whether a Host header is an IP address, localhost or a name below it, with any port. A console at home answers only
 * these: by DNS rebinding a page of another site can send requests here under that site's name, but not under these names.
 */
export function isOwnName(host: string): boolean {
  const [, name = ''] = /^(\[[^\]]*\]|[^:]*)(?::[0-9]*)?$/.exec(host) ?? []
  return isIP(name.replace(/^\[(.*)\]$/, '$1')) > 0 || /^(?:[a-z0-9-]+\.)*localhost\.?$/i.test(name)
}
