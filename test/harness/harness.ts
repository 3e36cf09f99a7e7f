// A whole running service for a test: real store, real sockets, on a free port.
import assert from 'node:assert/strict'
import { after, before, describe } from 'node:test'
import { randomText } from '../../src/accounts/api-keys.ts'
import { type Config, readConfig } from '../../src/config.ts'
import { type ErrorBody, type ErrorCode, ERRORS, Problem } from '../../src/contract/errors.ts'
import { responsesOf } from '../../src/contract/openapi.ts'
import { examplePath, type Operation, OPERATIONS } from '../../src/contract/operations.ts'
import { PET_STATUSES } from '../../src/contract/pets.ts'
import type { Timeouts } from '../../src/http/app.ts'
import { findOperation, originForm } from '../../src/http/call/routes.ts'
import { createLog } from '../../src/log.ts'
import { type Running, startServer } from '../../src/server.ts'
import type { Account, ApiKey, Role } from '../../src/store/account-store.ts'
import { ENGINES, type TestEngine } from './databases/engines.ts'
import { kindOf } from '../../src/store/records.ts'
import { freePort } from './connections/free-port.ts'
import { until } from './until.ts'
import { Folder, serve } from './programs/command.ts'
import { WORKERS } from './programs/with-workers.ts'

export const PASSWORD = 'correct horse battery'

/** For whom an invitation is, where it does not matter. */
export const INVITED = { name: 'Somebody', role: 'member' } as const

export interface Petstore extends Running, AsyncDisposable {
  account: Account
  apiKey: ApiKey
  /** The secret of `apiKey`. */
  key: string
  /** What was logged, a parsed line each. */
  logged: Record<string, unknown>[]
  /** Calls `/v1` + path with the key; `init` as for fetch. The answer must be one that the OpenAPI document describes. */
  call(path: string, init?: RequestInit): Promise<Response>
  /** POSTs this JSON text, or value as JSON, to `/v1/pets`. */
  add(body: unknown, headers?: Record<string, string>): Promise<Response>
}

export interface PetstoreOptions {
  engine?: TestEngine
  /** A database that outlives the service; else an own one that goes with it. */
  database?: string
  /** Settings as variables. */
  env?: Record<string, string>
  clock?: () => number
  monotonic?: () => number
  timeouts?: Timeouts
  /** What no variable can set: a test that needs a fault of the service gets one by this. */
  config?: Partial<Config>
  /** `false` for a test that cuts or holds the next statement: the service sends none by itself, and looks up no key twice. */
  chores?: false
}

export async function startPetstore(options: PetstoreOptions = {}): Promise<Petstore> {
  const { engine = ENGINES[0]!, database, env, clock, timeouts } = options
  const monotonic = options.monotonic ?? (options.chores === false ? () => 0 : undefined)
  const own = database === undefined ? await engine.newDatabase() : undefined
  const logged: Record<string, unknown>[] = []
  const write = (line: string) => void logged.push(JSON.parse(line) as Record<string, unknown>)
  const settings = readConfig(
    {},
    { PORT: await portFor(env), PETSTORE_LOG_LEVEL: 'info', DATABASE_URL: database ?? own!.url, ...WORKERS, ...env },
  )
  const config = { ...settings, ...options.config }
  const running = await startServer(config, createLog(config.logLevel, { write }), {
    ...(clock && { clock }),
    ...(monotonic && { monotonic }),
    timeouts,
  })
  if (options.chores === false) {
    running.store.accounts.recordUsage = () => Promise.resolve()
  }
  await until(() => running.store.ping().then(() => true), 'the database is open')
  const { account, apiKey, key } = await makeKey(running)
  if (options.chores === false)
    await until(() => !running.store.connections()?.inUse, 'what the service does at its start is over')

  const file = await startFile(options, database ?? own!.url)
  const { url } = file ?? running
  const call = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(`${url}/v1${path}`, {
      ...init,
      headers: { Authorization: `Bearer ${key}`, ...init.headers },
    })
    assertDocumented(init.method ?? 'GET', response)
    return response
  }
  const add = (body: unknown, headers: Record<string, string> = {}) =>
    call('/pets', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
  return {
    ...running,
    ...file,
    account,
    apiKey,
    key,
    logged: file?.logged ?? logged,
    call,
    add,
    async [Symbol.asyncDispose]() {
      if (file !== undefined) await file[Symbol.asyncDispose]()
      await running.stop()
      await own?.[Symbol.asyncDispose]()
    },
  }
}

/**
 * In a run against the executable (`npm run test:executable`), starts it beside the service of this process, on the same database;
 * the requests of the test go to it. Undefined where a test needs what no setting gives, such as another clock.
 */
async function startFile(
  { env, clock, monotonic, timeouts, config, chores }: PetstoreOptions,
  databaseUrl: string,
): Promise<(Pick<Petstore, 'url' | 'adminUrl' | 'logged'> & AsyncDisposable) | undefined> {
  const file = process.env['TEST_PETSTORE_EXECUTABLE']
  if (file === undefined || [clock, monotonic, timeouts, config, chores].some((each) => each !== undefined))
    return undefined
  const folder = await Folder.create([file])
  const settings = { PETSTORE_LOG_LEVEL: 'info', DATABASE_URL: databaseUrl, ...env }
  const { url, adminUrl, lines, child, ended } = await serve(folder, { env: settings })
  return {
    url,
    adminUrl,
    logged: lines,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await ended
      await folder[Symbol.asyncDispose]()
    },
  }
}

/** With workers a port is chosen beforehand: several services of this process would share the port that stands for a free one. */
async function portFor(env: Record<string, string> = {}): Promise<string> {
  return 'PETSTORE_WORKERS' in { ...WORKERS, ...env } ? String(await freePort()) : '0'
}

/** Calls an operation with the examples of its description: a new operation is covered the moment it is declared. */
export function callExample(
  petstore: Petstore,
  operation: Operation,
  headers: Record<string, string> = {},
): Promise<Response> {
  const { method, body } = operation
  const content = body && {
    body: JSON.stringify(body.example),
    headers: { 'Content-Type': 'application/json', ...headers },
  }
  return petstore.call(examplePath(operation), { method, headers, ...content })
}

/** The path of the list that an operation belongs to, such as /pets for /pets/{petId}, and for /pets/1. */
export const collectionOf = ({ path }: Pick<Operation, 'path'>) => /^\/\w+/.exec(path)![0]

export function operationAt(path: string, method: Operation['method']): Operation {
  const found = OPERATIONS.find((operation) => operation.path === path && operation.method === method)
  assert.ok(found, `tests of what is at ${path} need its ${method}`)
  return found
}

/** Puts what the examples name back, after an operation that removes it: like the newest of its list, with the id 1. */
export async function restoreExample(petstore: Petstore, removed: Pick<Operation, 'path'>): Promise<void> {
  const collection = collectionOf(removed)
  const kind = kindOf(collection.slice(1))
  const newest = async () => (await petstore.store.records.read(kind, undefined, 1000)).at(-1)
  if ((await newest()) === undefined) await callExample(petstore, operationAt(collection, 'POST'))
  await petstore.store.records.write(kind, [{ ...(await newest())!, id: 1n }])
}

/** The `Allow` header at the path of operations, such as `/pets/{petId}`; without a path, that of the server as a whole. */
export function allowedAt(path?: string): string {
  const methods = OPERATIONS.filter((operation) => path === undefined || operation.path === path).map(
    ({ method }) => method,
  )
  return [...new Set([...methods, ...(methods.includes('GET') ? ['HEAD'] : []), 'OPTIONS'])].toSorted().join(', ')
}

/** One running service for a group of cases, on each engine unless the options name one. `service()` gives it inside a case. */
export function describeService(
  title: string,
  cases: (service: () => Petstore) => void,
  options: PetstoreOptions = {},
): void {
  for (const engine of options.engine === undefined ? ENGINES : [options.engine]) {
    describe(`${title}, on ${engine.name}`, () => cases(sharePetstore({ ...options, engine })))
  }
}

/** The same on SQLite alone: for what an engine has no part in, such as the words of pages, forms, cookies and framing. */
export function describeOnSqlite(title: string, cases: (service: () => Petstore) => void, options?: PetstoreOptions) {
  describeService(title, cases, { ...options, engine: ENGINES[0]! })
}

/** One running service for the cases of the group that this is called in, on SQLite unless an engine is given. */
export function sharePetstore(options: PetstoreOptions = {}): () => Petstore {
  let petstore: Petstore
  before(async () => {
    petstore = await startPetstore(options)
  })
  after(() => petstore[Symbol.asyncDispose]())
  return () => petstore
}

/** Of HTTP itself, not of an operation. */
const OF_HTTP = new Set(['date', 'connection', 'keep-alive', 'content-length', 'content-type', 'transfer-encoding'])

const described = new Map(OPERATIONS.map((operation) => [operation.id as string, responsesOf(operation)]))

/** Checks that the answer of an operation has a status, an error code and headers that the OpenAPI document describes. */
function assertDocumented(method: string, { url, status, headers }: Response): void {
  const { pathname } = new URL(url)
  const operation = findOperation(method, originForm(pathname))?.operation
  if (operation === undefined) return
  const answer = described.get(operation.id)![status] as
    { headers: object; content?: Record<string, { examples?: object }> } | undefined
  assert.ok(answer, `undocumented status ${status} of ${operation.id}`)
  const code = /#(\w+)>; rel="help"/.exec(headers.get('link') ?? '')?.[1]
  const codes = answer.content?.['application/json']?.examples ?? {}
  assert.ok(code === undefined || code in codes, `undocumented error code ${code} of ${operation.id}`)
  const documented = new Set(Object.keys(answer.headers).map((name) => name.toLowerCase()))
  for (const name of headerNames(headers))
    assert.ok(documented.has(name), `undocumented header ${name} of ${operation.id}, ${status}`)
}

/** The headers that belong to an operation, in lower case. */
export function headerNames(headers: Headers): string[] {
  return [...headers.keys()].filter((name) => !OF_HTTP.has(name))
}

/** Checks that this is the Error body of that code, in full, and gives its message. */
export async function expectError(response: Response, code: ErrorCode): Promise<string> {
  const text = await response.text()
  assert.equal(response.status, ERRORS[code].status, text)
  assert.equal(response.headers.get('content-type'), 'application/json')
  assert.ok(response.headers.get('request-id'))
  assert.ok(
    response.headers.get('link')?.includes(`/docs/errors#${code}>; rel="help"`),
    'it links to its documentation',
  )
  const { message, ...rest } = JSON.parse(text) as ErrorBody
  assert.deepEqual(rest, { code, status: response.status })
  assert.match(message, /^[A-Za-z].*\.$/s, 'the message is a sentence')
  return message
}

/** The hash of PASSWORD at the lowest cost that argon2 has: a real one takes 50 ms to make, and again at each sign-in. */
const CHEAP_HASH = '$argon2id$v=19$m=8,t=1,p=1$cGV0c3RvcmUgdGVzdHMhIQ$fmz8pPu6ceOQhaLrKEEJS9L3keo86rn7SCX6gLp9TgM'

/** An account with PASSWORD; the role of a manager is given to whoever is the first. */
export async function makeAccount(
  { store }: Pick<Running, 'store'>,
  email: string,
  role: Role = 'member',
): Promise<Account> {
  const at = Date.now()
  const account = { id: `acct_${randomText(16)}`, email, passwordHash: CHEAP_HASH, createdAt: at, role }
  const event = { at, accountId: account.id, action: 'account.created', via: 'command line', subject: email } as const
  assert.ok(await store.accounts.createAccount(account, event), `there is already an account for ${email}`)
  return account
}

/** An account with PASSWORD whose comparison takes as long as a real one's, for tests that need that time. */
export async function makeCostlyAccount({ accounts }: Running, email: string): Promise<Account> {
  const account = await accounts.create(email, PASSWORD, 'console')
  if (account instanceof Problem) throw new Error(account.message)
  return account
}

let accountsMade = 0

/** Another account with a key of its own. */
export async function makeKey(running: Running): Promise<{ account: Account; apiKey: ApiKey; key: string }> {
  accountsMade += 1
  const account = await makeAccount(running, `tester${process.pid}-${accountsMade}@example.com`)
  const made = await running.accounts.createKey(account, 'test', undefined, 'command line')
  if (made instanceof Problem) throw new Error(made.message)
  return { account, apiKey: made.key, key: made.secret }
}

/** How many animals there are. */
export async function countPets({ store }: Petstore): Promise<number> {
  const counts = await store.pets.countByStatus()
  return PET_STATUSES.reduce((sum, status) => sum + counts[status], 0)
}
