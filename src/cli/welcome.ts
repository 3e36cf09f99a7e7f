// What a person sees when the service has started: where things are, and how to get a key.
import { randomText } from '../accounts/api-keys.ts'
import { Refused } from '../contract/refused.ts'
import { type Config, databasePlace } from '../config.ts'
import { BASE_PATH, VERSION } from '../contract/operations.ts'
import type { Running } from '../server.ts'
import { accent, type Terminal } from './terminal.ts'

const FIRST_ACCOUNT = 'first-run@localhost'
const FIRST_KEY_DAYS = 7

/** On an empty database, a key to try things with; it ends by itself. Its account has a password nobody knows. */
export async function firstRunKey({ accounts, store }: Running, now: number): Promise<string | undefined> {
  if ((await store.accounts.listAccounts()).length > 0) return undefined
  const account = await accounts.create(FIRST_ACCOUNT, randomText(40), 'command line')
  if (account instanceof Refused) return undefined
  const made = await accounts.createKey(account, 'first run', now + FIRST_KEY_DAYS * 86_400_000, 'command line')
  return made instanceof Refused ? undefined : made.secret
}

export function welcome(terminal: Terminal, config: Config, { url, adminUrl }: Running, key: string | undefined): string {
  const { environment, database, signup } = config
  const rows: [string, string][] = [
    ['API', `${url}${BASE_PATH}`],
    ['Reference', `${url}/docs`],
    ['Console', `${url}/`],
    ...(adminUrl === undefined ? [] : [['Metrics', `${adminUrl}/metrics`] as [string, string]]),
    ['Data', databasePlace(database)],
    ['Sign-up', signup === 'open' ? 'open: anyone who reaches the console can create an account' : 'closed: accounts come from the command line'],
    ['Get a key', signup === 'open' ? `create an account at ${url}/, then generate a key` : 'petstore account create EMAIL, then petstore key create'],
  ]
  const width = Math.max(...rows.map(([name]) => name.length))
  const lines = rows.map(([name, value]) => `  ${accent(terminal, name.padEnd(width))}  ${value}`)
  const curl = key && [
    '',
    `  Try it now (this key is shown once and ends in ${FIRST_KEY_DAYS} days):`,
    `  curl -H "Authorization: Bearer ${key}" ${url}${BASE_PATH}/pets`,
  ]
  return ['', `  Petstore ${VERSION}, ${environment}`, '', ...lines, ...(curl || []), ''].join('\n')
}
