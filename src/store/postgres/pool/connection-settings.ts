// Parses the DATABASE_URL of PostgreSQL: hosts, limits, TLS. Refuses parameters that it does not know.
import { entryOf } from '../../../contract/text/entry-of.ts'
import { redactCredentials, redactValue } from '../../../contract/text/redact.ts'
import { readSmallFile, reasonOf } from '../../database/files.ts'
import { CannotOpenStore } from '../../store.ts'

export interface Host {
  host: string
  port: number
}

export function hostAndPort({ host, port }: Host): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

/** No TLS, TLS if the server offers it, always TLS, or TLS with a verified certificate and, with `name`, host name. */
export type Tls = false | 'prefer' | 'require' | { ca: string | undefined; name: boolean }

export interface ConnectionSettings {
  hosts: Host[]
  user: string | undefined
  password: string | undefined
  database: string | undefined
  tls: Tls
  /** Whether only a host that accepts writes is used. */
  needsWritable: boolean
  poolSize: number
  connectTimeoutMs: number
  statementTimeoutMs: number
  /** For PgBouncer in transaction mode: no prepared statements, and no time limits sent when connecting. */
  pgbouncer: boolean
  applicationName: string
}

const DEFAULT_PORT = 5432

/** The query parameters: the values that each accepts, in words and as a pattern. Defaults are in `parseConnection`. */
const PARAMETERS: Record<string, { takes: string; accepts: RegExp }> = {
  host: { takes: 'a host, or the folder of a Unix socket', accepts: /./ },
  sslmode: {
    takes: 'disable, prefer, require, verify-ca or verify-full',
    accepts: /^(?:disable|prefer|require|verify-ca|verify-full)$/,
  },
  sslrootcert: { takes: 'the path of a file of certificates, or system', accepts: /./ },
  target_session_attrs: { takes: 'any, read-write or primary', accepts: /^(?:any|read-write|primary)$/ },
  pool_size: { takes: 'a number of connections from 1 to 1000', accepts: /^(?:[1-9][0-9]{0,2}|1000)$/ },
  connect_timeout: { takes: 'seconds from 1 to 60', accepts: /^(?:[1-9]|[1-5][0-9]|60)$/ },
  statement_timeout: {
    takes: 'milliseconds from 100 to 600000',
    accepts: /^(?:[1-9][0-9]{2,4}|[1-5][0-9]{5}|600000)$/,
  },
  pgbouncer: { takes: 'true or false', accepts: /^(?:true|false)$/ },
  application_name: { takes: 'a name', accepts: /./ },
}

export function parseConnection(url: string): ConnectionSettings {
  const [, authority = '', path = '', query = ''] =
    /^postgres(?:ql)?:\/\/([^/?]*)(?:\/([^?]*))?(?:\?(.*))?$/s.exec(url) ?? []
  if (`${path}${query}`.includes('@'))
    throw new CannotOpenStore(
      'The database address has a / or ? before its @; in a user name or password write / as %2F, ? as %3F and @ as %40.',
    )
  const at = authority.lastIndexOf('@')
  const [user, password] = authority.slice(0, Math.max(at, 0)).split(/:(.*)/s, 2).map(decode)
  // Hosts are read before the parameters: if the host is missing, an apparent parameter may be a part of the password.
  const ownHosts = readHosts(authority.slice(at + 1))
  const parameters = readParameters(query)
  const hosts = parameters.has('host') ? readHosts(parameters.get('host')!) : ownHosts
  return {
    hosts,
    user: user || undefined,
    password: password || undefined,
    database: decode(path) || undefined,
    tls: readTls(parameters.get('sslmode'), parameters.get('sslrootcert')),
    needsWritable: (parameters.get('target_session_attrs') ?? (hosts.length > 1 ? 'read-write' : 'any')) !== 'any',
    poolSize: Number(parameters.get('pool_size') ?? 10),
    connectTimeoutMs: Number(parameters.get('connect_timeout') ?? 2) * 1000,
    statementTimeoutMs: Number(parameters.get('statement_timeout') ?? 5000),
    pgbouncer: parameters.get('pgbouncer') === 'true',
    applicationName: parameters.get('application_name') ?? 'petstore',
  }
}

function readParameters(query: string): Map<string, string> {
  const read = new Map<string, string>()
  for (const [name, value] of new URLSearchParams(query)) {
    const known = entryOf(PARAMETERS, name)
    if (known === undefined) {
      // A name without a value, or with other characters, may be a part of a password.
      const shown = /^[a-z_]+$/.test(name) && value !== '' ? ` ${name}` : ''
      throw new CannotOpenStore(
        `The database address has an unknown parameter${shown}; known are ${Object.keys(PARAMETERS).join(', ')}.`,
      )
    }
    if (!known.accepts.test(value)) {
      throw new CannotOpenStore(
        `The parameter ${name} of the database address must be ${known.takes}, got ${JSON.stringify(redactValue(value))}.`,
      )
    }
    read.set(name, value)
  }
  return read
}

function readHosts(text: string): Host[] {
  return (decode(text) || 'localhost').split(',').map((part) => {
    const [, host, port = DEFAULT_PORT] = /^(\[[^\]]+\]|[^:]+)(?::([0-9]{1,5}))?$/.exec(part) ?? []
    // The message does not quote the text: if the host was forgotten, it is the user and the password.
    if (host === undefined || !(Number(port) >= 1 && Number(port) <= 65_535))
      throw new CannotOpenStore(
        'The database address has no valid host: it must be postgres://USER:PASSWORD@HOST:PORT/NAME, several HOST:PORT separated by commas, with ports from 1 to 65535.',
      )
    return { host: host.replaceAll(/[[\]]/g, ''), port: Number(port) }
  })
}

/** Like libpq: `require` encrypts without verifying the server, `verify-full` verifies its certificate and name. */
function readTls(mode = 'prefer', rootCertificate = 'system'): Tls {
  if (mode === 'disable') return false
  if (mode === 'prefer' || mode === 'require') return mode
  return {
    ca: rootCertificate === 'system' ? undefined : readCertificates(rootCertificate),
    name: mode === 'verify-full',
  }
}

function readCertificates(path: string): string {
  try {
    return readSmallFile(path)
  } catch (error) {
    throw new CannotOpenStore(
      `Cannot read sslrootcert of the database address, ${redactCredentials(path)}: ${reasonOf(error as Error)}`,
      { cause: error },
    )
  }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new CannotOpenStore(
      'The database address has a % that is not followed by two hexadecimal digits; write a % as %25.',
    )
  }
}
