// What `serve` prints on a terminal once it has started: addresses, and how to get a key.
import { randomText } from '../accounts/api-keys.ts'
import { Refused } from '../contract/errors.ts'
import type { Config } from '../config.ts'
import { databasePlace } from '../database-address.ts'
import { BASE_PATH, VERSION } from '../contract/operations.ts'
import type { Running } from '../server.ts'
import { accent, type Terminal } from './terminal.ts'

const FIRST_ACCOUNT = 'first-run@localhost'
const FIRST_KEY_DAYS = 7

/** Creates a key for a first try if there is no account yet. It expires soon; nobody knows the password of its account. */
export async function firstRunKey({ accounts, store }: Running, now: number): Promise<string | undefined> {
  if ((await store.accounts.listAccounts()).length > 0) return undefined
  const account = await accounts.create(FIRST_ACCOUNT, randomText(40), 'command line')
  if (account instanceof Refused) return undefined
  const made = await accounts.createKey(account, 'first run', now + FIRST_KEY_DAYS * 86_400_000, 'command line')
  return made instanceof Refused ? undefined : made.secret
}

export function welcome(terminal: Terminal, config: Config, running: Running, key: string | undefined): string {
  const { environment, database } = config
  const { url, adminUrl } = running
  const rows: [string, string][] = [
    ['API', `${url}${BASE_PATH}`],
    ['Reference', `${url}/docs`],
    ['Console', `${url}/`],
    ...(adminUrl === undefined ? [] : [['Metrics', `${adminUrl}/metrics`] as [string, string]]),
    ['Data', databasePlace(database)],
    ...signupRows(terminal, config, running),
  ]
  const width = Math.max(...rows.map(([name]) => name.length))
  const lines = rows.map(([name, value]) => `  ${accent(terminal, name.padEnd(width))}  ${value}`)
  const curl = key && [
    '',
    `  Try it now (this key is shown once and expires in ${FIRST_KEY_DAYS} days):`,
    `  curl -H "Authorization: Bearer ${key}" ${url}${BASE_PATH}/pets`,
  ]
  return ['', `  Petstore ${VERSION}, ${environment}`, '', ...lines, ...(curl || []), ''].join('\n')
}

/** Says why sign-up is open or closed where nobody has set it; empty where it is set. */
export function reasonForSignup(config: Config, { signup }: Running): string {
  if (config.signup !== undefined) return ''
  return signup === 'open'
    ? ' (not set, and only this machine reaches the service)'
    : ' (not set: open it with --signup open)'
}

function signupRows({ program }: Terminal, config: Config, running: Running): [string, string][] {
  const { signup, url } = running
  const reason = reasonForSignup(config, running)
  if (signup === 'closed') {
    return [
      ['Sign-up', `closed: accounts are created on the command line${reason}`],
      ['Get a key', `${program} account create EMAIL, then ${program} key create`],
    ]
  }
  return [
    ['Sign-up', `open: anyone who reaches the console can create an account${reason}`],
    ['Get a key', `create an account at ${url}/, then generate a key`],
  ]
}
