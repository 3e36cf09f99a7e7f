// Shapes of requests that are small and ask for much work: each as large as the service takes it, at most 5 MB.
import { request } from 'node:http'
import { UPLOAD_LIMIT } from '../../src/contract/limits.ts'

/** One character, 18 letters once it is normalised. */
export const LONG_SIGN = '\uFDFA'
/** Marks in the wrong order, which normalisation sorts. */
const MARKS = '\u0301\u0323'
const BODY = 16_000
const HEADERS = 15_000
const MULTIPART = 'multipart/form-data; boundary=b'
const FORM = 'application/x-www-form-urlencoded'

export const EMAIL = 'drill@example.com'
export const PASSWORD = 'correct horse battery'

type Shape = readonly [name: string, send: () => Promise<number>]

/** Resolves with the shapes; each sends a request and resolves with the status of its answer. */
export async function shapesOf(url: string, key: string): Promise<Shape[]> {
  const ask = async (path: string, init: RequestInit = {}): Promise<Response> =>
    fetch(url + path, { redirect: 'manual', signal: AbortSignal.timeout(60_000), ...init })
  const send = async (path: string, init?: RequestInit): Promise<number> => {
    const response = await ask(path, init)
    await response.arrayBuffer()
    return response.status
  }

  const csrfOf = (page: string) => / name="csrf" value="([^"]*)"/.exec(page)![1]!
  const cookieOf = ({ headers }: Response) =>
    headers
      .getSetCookie()
      .map((line) => line.split(';')[0])
      .join('; ')
  const start = await ask('/sign-in')
  const signIn = { csrf: csrfOf(await start.clone().text()), email: EMAIL, password: PASSWORD }
  const signedIn = await ask('/sign-in', {
    method: 'POST',
    headers: { Cookie: cookieOf(start) },
    body: new URLSearchParams(signIn),
  })
  const Cookie = cookieOf(signedIn)
  const csrf = csrfOf(await (await ask('/animals/new', { headers: { Cookie } })).text())

  const Authorization = `Bearer ${key}`
  const operation = (name: string, value: string): Shape => [
    `GET /v1/pets, ${name}`,
    () => send('/v1/pets', { headers: { Authorization, [name]: value } }),
  ]
  const body = (name: string, text: string, path = '/v1/pets'): Shape => [
    `POST ${path}, ${name}`,
    () => send(path, { method: 'POST', headers: { Authorization, 'Content-Type': 'application/json' }, body: text }),
  ]
  const page = (path: string, name = path): Shape => [`GET ${name}`, () => send(path, { headers: { Cookie } })]
  const form = (path: string, name: string, fields: string): Shape => [
    `POST ${path}, ${name}`,
    () => send(path, { method: 'POST', headers: { Cookie, 'Content-Type': FORM }, body: `csrf=${csrf}&${fields}` }),
  ]
  const upload = (content: string, boundaries = ''): Promise<Response> => {
    const disposition = 'Content-Disposition: form-data; name='
    const token = `--b\r\n${disposition}"csrf"\r\n\r\n${csrf}\r\n`
    const whole = `${token}${boundaries}--b\r\n${disposition}"file"; filename="a.csv"\r\n\r\n${content}\r\n--b--\r\n`
    const headers = { Cookie, 'Content-Type': MULTIPART }
    return ask('/animals/import', { method: 'POST', headers, body: whole })
  }
  /** A file, and its steps: those whose form the page does not show are refused. */
  const file = (name: string, content: string, columns = ''): Shape[] => {
    let [path, fields] = ['/animals/import', '']
    const arrive: Shape[1] = async () => {
      const { status, headers } = await upload(content)
      path = headers.get('location') ?? path
      return status
    }
    const look: Shape[1] = async () => {
      const response = await ask(path, { headers: { Cookie } })
      const hidden = (await response.text()).matchAll(/ name="(shown|(?:row|cell|choice)_\w+)" value="([^"]*)"/g)
      fields = Array.from(hidden, ([, field, value]) => `${field}=${encodeURIComponent(value!)}`).join('&')
      return response.status
    }
    return [
      [`a file of ${name}`, arrive],
      ['  its columns', () => page(`${path}/columns`)[1]()],
      ['  choosing them', () => form(`${path}/columns`, '', columns)[1]()],
      ['  its page', look],
      ['  correcting it', () => form(path, '', `act=check&${fields}`)[1]()],
      ['  the rows left out', () => page(`${path}/left-out.csv`)[1]()],
      ['  adding it', () => form(path, '', `act=add&similar=all&${fields}`)[1]()],
    ]
  }
  const filled = (unit: string, length: number) => unit.repeat(Math.floor(length / Buffer.byteLength(unit)))
  const encoded = (unit: string) => filled(encodeURIComponent(unit), BODY - 1000)
  const many = (count: number, unit: (index: number) => string) =>
    Array.from({ length: count }, (_, at) => unit(at)).join('')
  const tool = (tail: string) =>
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"createPet","arguments":${tail}}}`

  return [
    body('deep arrays', filled('[', BODY)),
    body('deep objects', filled('{"a":', BODY)),
    body('a large exponent', '{"name":"Rex","categoryId":1e999999}'),
    body('a long exponent', `{"name":"Rex","categoryId":1e${filled('9', BODY - 100)}}`),
    body('a long integer', `{"name":"Rex","categoryId":${filled('9', BODY - 100)}}`),
    body(
      'long integers in a list',
      `{"name":"Rex","categoryId":1,"x":[${filled('123456789012345678901,', BODY - 100)}1]}`,
    ),
    body('many keys', `{${many(1300, (at) => `"k${at}":1,`)}"name":"Rex","categoryId":1}`),
    body('one key again and again', `{${filled('"name":1,', BODY - 100)}"name":"Rex","categoryId":1}`),
    body('a long name', JSON.stringify({ name: filled(LONG_SIGN, BODY - 100), categoryId: 1 })),
    body('escapes', `{"name":"${filled('\\u0000', BODY - 100)}","categoryId":1}`),
    body('5 MB', filled('x', UPLOAD_LIMIT)),
    body('a batch', `[${filled('{},', BODY - 10)}{}]`, '/mcp'),
    body(
      'a tool with deep arguments',
      tool(`{"name":${filled('[', BODY / 2 - 200)}${filled(']', BODY / 2 - 200)}}`),
      '/mcp',
    ),
    body('tools/list', '{"jsonrpc":"2.0","id":1,"method":"tools/list"}', '/mcp'),
    operation('If-None-Match', filled('"x",', HEADERS)),
    operation('X-Forwarded-For', filled('1.1.1.1,', HEADERS)),
    operation('Accept', filled('a/b;q=0,', HEADERS)),
    operation('Accept-Encoding', filled('gzip;q=0,', HEADERS)),
    operation('Cookie', filled('petstore=x;', HEADERS)),
    operation('traceparent', filled('0-', HEADERS)),
    operation('Idempotency-Key', filled('"\\', HEADERS)),
    operation('Request-Id', filled('x', HEADERS)),
    [
      'GET /v1/pets, 1,900 headers',
      () => send('/v1/pets', { headers: Object.fromEntries(Array.from({ length: 1900 }, (_, at) => [`h${at}`, ''])) }),
    ],
    [
      'GET /v1/pets, 5,000 parameters',
      () => send(`/v1/pets?${filled('a=&', HEADERS)}`, { headers: { Authorization } }),
    ],
    ['GET /v1/pets of 100', () => send('/v1/pets?limit=100', { headers: { Authorization } })],
    ['a path of escapes', () => send(`/${filled('%25', HEADERS)}`, { headers: { Authorization } })],
    ['a path that looks like keys', () => send(`/${filled('pets_live_', HEADERS)}`, { headers: { Authorization } })],
    ...['/openapi.json', '/docs/deprecations'].map((path): Shape => {
      let hosts = 0
      return [`GET ${path}, each time from another host`, () => fetchAs(`127.0.0.${(hosts += 1)}`, url, path)]
    }),
    page('/animals'),
    page(`/animals?q=${filled('a+', 6000)}`, '/animals, a search of 6 KB'),
    page(`/animals?q=${filled(encodeURIComponent(LONG_SIGN), 12_000)}`, '/animals, a search of long signs'),
    page(`/animals?q=${filled(encodeURIComponent(MARKS), 12_000)}`, '/animals, a search of marks'),
    ...[
      '/animals.csv',
      '/animals/new',
      '/animals/1',
      '/animals/changes',
      '/categories',
      '/activity',
      '/keys',
      '/account',
    ].map((path) => page(path)),
    form('/animals/new', 'a long category', `name=Rex&categoryId=${encoded(LONG_SIGN)}`),
    form('/animals/new', 'a category of marks', `name=Rex&categoryId=${encoded(MARKS)}`),
    form('/animals/new', 'a category like all', `name=Rex&categoryId=${encodeURIComponent(LONG_SIGN.repeat(96))}0x`),
    form('/animals/new', 'a name of marks', `categoryId=1&name=${encoded(MARKS)}`),
    form('/categories/new', 'a long name', `name=${encoded(LONG_SIGN)}`),
    form('/categories/new', 'one more than there can be', 'name=New'),
    form(
      '/categories/1',
      'another name',
      `shown=${encodeURIComponent(`${LONG_SIGN.repeat(96)}1`)}&name=${Date.now()}x`,
    ),
    form('/animals/many', '700 ticks', `status=sold&${many(700, (at) => `pick=${at}&shown=${at}.x&`)}`),
    form('/animals/1', '7,000 fields', filled('a&', BODY - 200)),
    form('/animals/1', 'broken escapes', filled('%', BODY - 200)),
    form('/keys', 'a name of marks', `name=${encoded(MARKS)}`),
    form('/account/name', 'a name of marks', `name=${encoded(MARKS)}`),
    form('/account/password', 'a long password', `current=${filled('x', 7000)}&password=${filled('y', 7000)}`),
    form('/sign-in', 'a wrong password', `email=${EMAIL}&password=wrong`),
    ...['sign-in', 'sign-up'].flatMap((path) => [
      form(`/${path}`, 'an address of marks', `email=${encoded(MARKS)}@a.b&password=x`),
      form(`/${path}`, 'an address of long signs', `email=${encoded(LONG_SIGN)}@a.b&password=x`),
    ]),
    [
      'tiny parts before a file',
      async () => (await upload('x', filled('--b\r\n\r\n\r\n', UPLOAD_LIMIT - 1000))).status,
    ],
    [
      'a part with long headers',
      async () => (await upload('x', `--b\r\n${filled('a:b\r\n', UPLOAD_LIMIT - 1000)}\r\n`)).status,
    ],
    ...file('boundaries that are none', filled('\r\n--a', UPLOAD_LIMIT)),
    ...file('one cell of 5 MB', `name,category\n"${filled('x', UPLOAD_LIMIT - 100)}"`),
    ...file('5 MB of commas', `name,category\n${filled(',', UPLOAD_LIMIT - 100)}`),
    ...file('a header of 16,384 columns', `name,category${filled(',x', 32_768)}\n`),
    ...file('a header of 4,000 columns', `name,category${filled(',', 4000)}\n`),
    ...file('a header of quotes', `name,category,${filled('"', 100_000)}\n`),
    ...file(
      'rows of 900 columns',
      `name,category${filled(',x', 1798)}\n${many(300, () => `a,1${filled(',x', 1798)}\n`)}`,
    ),
    ...file('short rows', `name,category\n${filled('a\n', 20_000)}`),
    ...file('quoted quotes', `name,category\n${many(60, () => `"${filled('""', 7000)}",1\n`)}`),
    ...file('lines in cells', `name,category\n${many(60, () => `"${filled('\n', 7000)}",1\n`)}`),
    ...file('categories of long signs', `name,category\n${many(20, (at) => `a,${LONG_SIGN.repeat(96)}${at}x\n`)}`),
    ...file('cells of long signs', `name,category\n${many(60, () => `a,${filled(LONG_SIGN, 8000)}\n`)}`),
    ...file('cells of marks', `name,category\n${many(60, () => `a,${filled(MARKS, 8000)}\n`)}`),
    ...file('names like secrets', `name,category\n${many(60, () => `a,${filled('%25', 8000)}\n`)}`),
    ...file('UTF-16 without sense', `\0n${filled('\0\ud800', 100_000)}`),
    ...file('unknown categories like all', `name,category\n${many(100, (at) => `a,${LONG_SIGN.repeat(96)}${at}x\n`)}`),
    ...file('bad rows', `name,category,status\n${many(19_000, (at) => `,Kind ${at % 90},gone ${at % 9}\n`)}`),
    ...file('delimiters of all kinds', filled(',;\t|', UPLOAD_LIMIT - 100), 'header=0&column_0=name&column_1=category'),
    ...file('2,000 animals', `name,category\n${many(2000, (at) => `${LONG_SIGN.repeat(80)}${at},1\n`)}`),
  ]
}

/** fetch would replace the Host header. */
function fetchAs(host: string, url: string, path: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(url + path, { headers: { Host: host } }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode!))
    })
    sent.on('error', reject).end()
  })
}
