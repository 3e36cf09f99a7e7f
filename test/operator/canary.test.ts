// Secrets that a client puts in the wrong place: sent everywhere that a request can hold one, then searched for in the logs of
// every level, the metrics, the answers and the database.
import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { describe, it } from 'node:test'
import connectTo from 'postgres'
import { generateKey } from '../../src/accounts/api-keys.ts'
import { newToken } from '../../src/accounts/sessions.ts'
import { ConsoleClient, signedInManager } from '../harness/connections/console-client.ts'
import { ENGINES } from '../harness/databases/engines.ts'
import { INVITED, PASSWORD, type Petstore, startPetstore } from '../harness/harness.ts'
import { RawConnection } from '../harness/connections/raw-http.ts'

/** A password has no form by which it could be recognised; this one is not the tester's, and is refused where it is tried. */
const WRONG_PASSWORD = 'correct~horse~canary~staple'

interface Place {
  /** Sends the secret there; resolves with everything that was answered. */
  send: (secret: string, petstore: Petstore, member: ConsoleClient) => Promise<string>
  /** A path, or a value that an error message must quote by contract: only secrets with a form of their own are left out. */
  quoted?: true
}

async function answer(response: Promise<Response>): Promise<string> {
  const answered = await response
  const body = await answered.text()
  return answered.ok ? '' : `${JSON.stringify([...answered.headers])} ${body}`
}

async function raw(petstore: Petstore, bytes: string): Promise<string> {
  using connection = new RawConnection(petstore.url)
  connection.send(bytes)
  const { headers, body } = await connection.answer()
  return `${JSON.stringify([...headers])} ${body}`
}

const header = (name: string, path = '/v1/pets') => ({
  send: (secret: string, { url }: Petstore) => answer(fetch(url + path, { headers: { [name]: secret } })),
})
const create = (body: (secret: string) => string): Place => ({
  send: (secret, petstore) => answer(petstore.add(body(secret))),
})
const createWith = (name: string, value = (secret: string) => secret): Place => ({
  send: (secret, petstore) => answer(petstore.add('{"name":"Rex","categoryId":1}', { [name]: value(secret) })),
})
const listed = (query: (secret: string) => string): Place => ({
  send: (secret, petstore) => answer(petstore.call(`/pets?${query(encodeURIComponent(secret))}`)),
})
const path = (prefix: string, encode: (secret: string) => string = encodeURIComponent): Place => ({
  send: (secret, petstore) =>
    answer(fetch(petstore.url + prefix + encode(secret), { headers: { Authorization: `Bearer ${petstore.key}` } })),
  quoted: true,
})
const rawHeader = (line: (secret: string) => string): Place => ({
  send: (secret, petstore) => raw(petstore, `GET /v1/pets HTTP/1.1\r\n${line(secret)}\r\n\r\n`),
  quoted: true,
})
/** A form of the console, as a stranger or signed in. What was typed into a visible field is shown to the person who typed it. */
const form = (
  page: string,
  action: string,
  fields: (secret: string) => Record<string, string>,
  member = false,
): Place => ({
  async send(secret, petstore, client) {
    const { body } = await (member ? client : new ConsoleClient(petstore.url)).submit(page, action, fields(secret))
    return body.replaceAll(/value="[^"]*"/g, '')
  },
})
const twiceEncoded = (secret: string) =>
  encodeURIComponent(secret.replaceAll(/[^]/g, (character) => `%${character.charCodeAt(0).toString(16)}`))

const PLACES: Record<string, Place> = {
  'Authorization without a scheme': header('Authorization'),
  'Authorization: Bearer': {
    send: (secret, { url }) => answer(fetch(`${url}/v1/pets`, { headers: { Authorization: `Bearer ${secret}` } })),
  },
  'Authorization: Basic': {
    send: (secret, { url }) =>
      answer(fetch(`${url}/v1/pets`, { headers: { Authorization: `Basic ${btoa(`me:${secret}`)}` } })),
  },
  'X-Api-Key': header('X-Api-Key'),
  'User-Agent': header('User-Agent'),
  Referer: header('Referer', '/nowhere'),
  Origin: header('Origin'),
  Accept: header('Accept', '/nowhere'),
  'Cookie of the API': header('Cookie'),
  'Cookie of the console': {
    send: (secret, { url }) =>
      answer(fetch(`${url}/keys`, { redirect: 'manual', headers: { Cookie: `petstore=${secret}; other=${secret}` } })),
  },
  'X-Forwarded-For': header('X-Forwarded-For', '/nowhere'),
  traceparent: header('traceparent'),
  'If-None-Match': {
    send: (secret, petstore) => answer(petstore.call('/pets/999', { headers: { 'If-None-Match': secret } })),
  },
  'Request-Id': { ...createWith('Request-Id'), quoted: true },
  'Idempotency-Key': { ...createWith('Idempotency-Key'), quoted: true },
  'Content-Type': { ...createWith('Content-Type'), quoted: true },
  charset: { ...createWith('Content-Type', (secret) => `application/json; charset=${secret}`), quoted: true },
  'Content-Encoding': { ...createWith('Content-Encoding'), quoted: true },
  Expect: rawHeader((secret) => `Host: pets.example\r\nExpect: ${secret}`),
  'Transfer-Encoding': rawHeader((secret) => `Host: pets.example\r\nTransfer-Encoding: ${secret}`),
  Host: rawHeader((secret) => `Host: ${secret}/`),
  'the name of a header': {
    ...rawHeader((secret) => `Host: pets.example\r\n${secret}: x`),
    send: async (secret, petstore) => answer(fetch(`${petstore.url}/v1/pets`, { headers: { [secret]: 'x' } })),
  },
  'the method': { send: (secret, petstore) => raw(petstore, `${secret} / HTTP/1.1\r\nHost: pets.example\r\n\r\n`) },
  'the request line': { send: (secret, petstore) => raw(petstore, `GET / ${secret}\r\nHost: pets.example\r\n\r\n`) },
  'a broken header': { send: (secret, petstore) => raw(petstore, `GET / HTTP/1.1\r\n${secret}\r\n\r\n`) },
  'a limit': { ...listed((secret) => `limit=${secret}`), quoted: true },
  'a status': { ...listed((secret) => `status=${secret}`), quoted: true },
  'a cursor': { ...listed((secret) => `cursor=${secret}`), quoted: true },
  'a limit, encoded twice': { ...listed((secret) => `limit=${twiceEncoded(secret)}`), quoted: true },
  'an unknown parameter': listed((secret) => `limit=0&api_key=${secret}&${secret}=1`),
  'a pet id': path('/v1/pets/'),
  'a pet id, encoded twice': path('/v1/pets/', twiceEncoded),
  'an unknown path': path('/v1/'),
  'a path of the console': path('/keys/'),
  'an asset': path('/assets/'),
  'a broken body': create((secret) => `{"name": ${secret}`),
  'a body that is a string': { ...create((secret) => JSON.stringify(secret)), quoted: true },
  'an unknown field': create((secret) => JSON.stringify({ name: '', password: secret, [secret]: 1 })),
  'a categoryId': { ...create((secret) => JSON.stringify({ name: 'Rex', categoryId: secret })), quoted: true },
  'the status of an animal': {
    ...create((secret) => JSON.stringify({ name: 'Rex', categoryId: 1, status: secret })),
    quoted: true,
  },
  'the password of a sign-in': form('/sign-in', '/sign-in', (secret) => ({
    email: 'canary@example.com',
    password: secret,
  })),
  'the email address of a sign-in': form('/sign-in', '/sign-in', (secret) => ({ email: secret, password: 'x' })),
  'the CSRF token of a form': form('/sign-in', '/sign-in', (secret) => ({ csrf: secret })),
  'the next page of a sign-in': form('/sign-in', '/sign-in', (secret) => ({
    email: 'x',
    password: 'x',
    next: `/keys?${secret}`,
  })),
  'the password of a sign-up': form('/sign-up', '/sign-up', (secret) => ({ email: 'no address', password: secret })),
  'an unknown field of a form': form('/sign-up', '/sign-up', (secret) => ({
    email: 'no address',
    password: 'x',
    [secret]: secret,
  })),
  'the current password': form('/account', '/account/password', (secret) => ({ current: secret, password: 'x' }), true),
  'a new password': form('/account', '/account/password', (secret) => ({ current: 'x', password: secret }), true),
  'the id of a form': form('/keys/new', '/keys', (secret) => ({ name: 'canary', expires: '7', formId: secret }), true),
  'the expiry of a key': form('/keys/new', '/keys', (secret) => ({ name: 'canary', expires: secret }), true),
  'the token of a link': {
    send: (secret, { url }) => answer(fetch(`${url}/link?token=${encodeURIComponent(secret)}`)),
  },
  'a query of the console': {
    send: (secret, { url }) =>
      answer(fetch(`${url}/sign-in?next=${encodeURIComponent(secret)}&${encodeURIComponent(secret)}=1`)),
  },
}

/** Fails where most of the secret stands in a text, in clear or percent-encoded. */
function assertAbsent(secret: string, text: string, where: string): void {
  const core = secret.slice(11, 27)
  let plain = text
  for (let round = 0; round < 4; round += 1) {
    const at = plain.indexOf(core)
    assert.equal(at, -1, `${where} holds …${plain.slice(Math.max(at - 120, 0), at + 40)}…`)
    plain = plain.replaceAll(/%[0-7][0-9a-f]/gi, (escape) => String.fromCharCode(Number.parseInt(escape.slice(1), 16)))
  }
}

/** All that a database holds, as text. */
async function everythingIn(url: string): Promise<string> {
  if (url.startsWith('sqlite:')) {
    const folder = dirname(url.slice('sqlite:'.length))
    const files = await readdir(folder)
    return (await Promise.all(files.map((file) => readFile(`${folder}/${file}`, 'latin1')))).join('')
  }
  const sql = connectTo(url, { max: 1 })
  try {
    const tables = await sql`SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'`
    const rows = await Promise.all(tables.map(({ name }) => sql`SELECT t::text AS row FROM ${sql(name as string)} t`))
    assert.ok(tables.length > 5)
    return rows
      .flat()
      .map(({ row }) => String(row))
      .join('\n')
  } finally {
    await sql.end()
  }
}

describe('A secret that a client sends', () => {
  for (const engine of ENGINES) {
    it(`is in no log, metric, answer or record, wherever it was sent, on ${engine.name}`, async () => {
      await using database = await engine.newDatabase()
      await using petstore = await startPetstore({
        database: database.url,
        env: { PETSTORE_LOG_LEVEL: 'debug', PETSTORE_ADMIN_PORT: '0', PETSTORE_SIGNUP: 'open' },
      })
      const client = await signedInManager(petstore)
      const token = client.cookies.get('petstore')!
      const link = (await petstore.accounts.makeLink(petstore.account, INVITED))!
      // What a secret is of makes a difference to the service, and none to what an engine keeps: there, one of each form.
      const others = [generateKey('staging'), generateKey('production'), token, newToken()]
      const secrets = [petstore.key, link, WRONG_PASSWORD, ...(engine === ENGINES[0] ? others : [])]
      for (const secret of secrets) {
        for (const [name, { send, quoted }] of Object.entries(PLACES)) {
          if (quoted && secret === WRONG_PASSWORD) continue
          assertAbsent(secret, await send(secret, petstore, client), `the answer to ${name}`)
        }
      }
      assert.equal((await client.get('/activity')).status, 200, 'the session is a real one, and still open')
      const metrics = await (await fetch(`${petstore.adminUrl}/metrics`)).text()
      const kept = await everythingIn(database.url)
      assert.ok(kept.includes(petstore.account.email), 'the search sees what is stored')
      for (const secret of [...secrets, PASSWORD]) {
        assertAbsent(secret, JSON.stringify(petstore.logged), 'the log')
        assertAbsent(secret, metrics, 'the metrics')
        assertAbsent(secret, kept, 'the database')
      }
      assert.ok(petstore.logged.length > 100)
    })
  }
})
