// The address of a database: read, named for people, and kept from telling its password.
import { resolve } from 'node:path'

export type DatabaseAddress = { engine: 'sqlite'; path: string } | { engine: 'postgres'; url: string }

/** Returns undefined for what is no address. */
export function parseDatabase(value: string): DatabaseAddress | undefined {
  if (/^postgres(?:ql)?:\/\/./.test(value)) return { engine: 'postgres', url: value }
  // sqlite:///path is the absolute path as others write it; with two slashes it would name a host.
  const path = /^sqlite:(?:\/\/(?=\/))?((?!\/\/).+)$/.exec(value)?.[1]
  return path === undefined ? undefined : { engine: 'sqlite', path: path === ':memory:' ? path : resolve(path) }
}

/** Hosts with their ports, then the name of the database. */
const POSTGRES_PLACE = /^(?:(?:\[[\da-f:.]+\]|[\w.-]+)(?::[0-9]{1,5})?(?:,(?!\/|$)|(?=\/|$)))*(?:\/[^@]*)?$/i

/** Names the database for people, without user and password; an address with neither host nor @ could be all password. */
export function databasePlace(database: DatabaseAddress): string {
  if (database.engine === 'sqlite') return database.path
  const [place = '', parameters] = database.url.replace(/^\w+:\/\/(?:.*@)?/s, '').split(/\?(.*)/s)
  if (!POSTGRES_PLACE.test(place)) return 'PostgreSQL'
  const host = new URLSearchParams(parameters).get('host')
  return `PostgreSQL at ${host === null ? place : `${host}${place.replace(/^[^/]*/, '')}`}`
}

/** Whether this is a database address with a password in it. */
export function holdsPassword(address: string): boolean {
  return /^\w+:\/\/[^:/?]*:.+@/s.test(address)
}

/** A database address may contain a password, and a broken one anywhere: a message repeats its scheme at most. */
export function withoutCredentials(address: string): string {
  if (address.startsWith('sqlite:')) return address
  return /[:@]/.test(address) ? `${/^\w*:/.exec(address)?.[0] ?? ''}…` : address
}
