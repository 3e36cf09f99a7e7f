// How pages, health checks, the document and assets answer as HTTP: methods, paths, bodies, proxies and connections. What a
// page shows is tested in console-*.test.ts.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { until } from '../harness/until.ts'
import { type Petstore, startPetstore } from '../harness/harness.ts'
import { expectRawError, type RawAnswer, RawConnection } from '../harness/connections/raw-http.ts'

const HOST = 'Host: localhost\r\n'
const HTML = 'Accept: text/html\r\n'
const FORM = 'Content-Type: application/x-www-form-urlencoded\r\n'

const PAGE = 'text/html; charset=utf-8'
const READ_ONLY = 'GET, HEAD, OPTIONS'
const WITH_FORM = 'GET, HEAD, OPTIONS, POST'

/** What a visitor who is not signed in gets for a GET, and the methods of the path. */
const PATHS: Record<string, { status: number; allow: string; type?: string }> = {
  '/': { status: 200, allow: READ_ONLY, type: PAGE },
  '/sign-in': { status: 200, allow: WITH_FORM, type: PAGE },
  '/keys': { status: 303, allow: WITH_FORM },
  '/keys/1/rename': { status: 303, allow: WITH_FORM },
  '/categories': { status: 303, allow: READ_ONLY },
  '/categories/1': { status: 303, allow: WITH_FORM },
  '/activity': { status: 303, allow: READ_ONLY },
  '/docs': { status: 200, allow: READ_ONLY, type: PAGE },
  '/docs/errors': { status: 200, allow: READ_ONLY, type: PAGE },
  '/assets/console.css': { status: 200, allow: READ_ONLY, type: 'text/css; charset=utf-8' },
  '/assets/icon.svg': { status: 200, allow: READ_ONLY, type: 'image/svg+xml' },
  '/openapi.json': { status: 200, allow: READ_ONLY, type: 'application/json' },
  '/livez': { status: 200, allow: READ_ONLY, type: 'application/json' },
  '/readyz': { status: 200, allow: READ_ONLY, type: 'application/json' },
}

/** Asserts that people are shown what happened on a page that no other site can use, with the request id; returns the page. */
function expectPage({ status, headers, body }: RawAnswer, expected: number): string {
  assert.deepEqual([status, headers.get('content-type')], [expected, PAGE], body)
  assert.match(headers.get('content-security-policy') ?? '', /^default-src 'none'/)
  assert.match(body, /<h1>[A-Z][^<]+<\/h1>/)
  if (status !== 404) assert.ok(body.includes(`Request id: <code>${headers.get('request-id')}</code>`))
  return body
}

describe('A request for a page', () => {
  let petstore: Petstore
  before(async () => {
    petstore = await startPetstore()
  })
  after(() => petstore[Symbol.asyncDispose]())

  /** Sends one request on its own connection. */
  async function ask(start: string, headers = '', body = ''): Promise<RawAnswer> {
    using connection = new RawConnection(petstore.url)
    connection.send(`${start} HTTP/1.1\r\n${HOST}${headers}\r\n${body}`)
    return await connection.answer()
  }

  for (const [path, { status, allow, type }] of Object.entries(PATHS)) {
    it(`${path}: GET, HEAD with its length and without the body, OPTIONS and 405 with Allow`, async () => {
      const got = await ask(`GET ${path}`)
      assert.deepEqual([got.status, got.headers.get('content-type')], [status, type])
      assert.equal(got.headers.get('connection'), 'keep-alive')
      const init: RequestInit = { redirect: 'manual', headers: { 'Accept-Encoding': 'identity' } }
      const fetched = await (await fetch(petstore.url + path, init)).arrayBuffer()
      const head = await fetch(petstore.url + path, { ...init, method: 'HEAD' })
      assert.equal(head.status, status)
      assert.equal(head.headers.get('content-type') ?? undefined, type)
      assert.ok(head.headers.get('request-id'))
      assert.equal(head.headers.get('content-length'), String(fetched.byteLength))
      assert.equal(await head.text(), '')
      const options = await ask(`OPTIONS ${path}`)
      assert.deepEqual([options.status, options.headers.get('allow'), options.body], [204, allow, ''])
      for (const method of ['PUT', 'DELETE', ...(allow === READ_ONLY ? ['POST'] : [])]) {
        const refused = await ask(`${method} ${path}`)
        assert.match(
          expectRawError(refused, 'method_not_allowed'),
          new RegExp(`^${method} is not allowed at "${path}"`),
        )
        const shown = await ask(`${method} ${path}`, HTML)
        if (type === 'application/json') expectRawError(shown, 'method_not_allowed')
        else assert.match(expectPage(shown, 405), new RegExp(`<p>${method} is not allowed at &quot;${path}`))
        for (const answer of [refused, shown]) assert.equal(answer.headers.get('allow'), allow)
      }
    })
  }

  it('with escapes: they are decoded part by part, and one that is broken is taken literally', async () => {
    const paths: Record<number, string[]> = {
      200: [
        '/%6Civez',
        '/assets/%63onsole.css',
        '/assets/console%2Ecss',
        '/livez?x=%zz',
        '/livez#top',
        'http://pets.example/livez',
      ],
      303: ['/keys/a%2Fb/rename', '/keys/%zz/rename', '/animals/%ff', '/animals/%E0%A4%A'],
      404: [
        '/assets%2Fconsole.css',
        '/assets/%zz',
        '/assets/..%2Fconsole.ts',
        '/assets/../console.ts',
        '/%zz',
        '/docs/',
        '/keys//rename',
        '/LIVEZ',
        '//',
      ],
    }
    for (const [status, those] of Object.entries(paths))
      for (const path of those) assert.equal((await ask(`GET ${path}`)).status, Number(status), path)
    const { headers } = await ask('GET /animals/1%3F?x=%20')
    assert.equal(headers.get('location'), '/sign-in?next=%2Fanimals%2F1%253F%3Fx%3D%2520')
    assert.equal((await ask(`GET /keys/${'x'.repeat(4000)}/rename`)).status, 303)
  })

  it('to an unknown path: a browser gets a page, everyone else the Error body, also for another method', async () => {
    for (const path of ['/nothing', '/%zz', '/docs/', '/assets/a/b', '/%2e%2e/', '/v1x']) {
      const page = await ask(`GET ${path}`, HTML)
      assert.deepEqual([page.status, page.headers.get('content-type')], [404, PAGE])
      assert.match(page.body, /<h1>Page not found<\/h1>/)
      assert.match(page.headers.get('content-security-policy') ?? '', /^default-src 'none'/)
      expectRawError(await ask(`GET ${path}`), 'unknown_path')
      for (const method of ['POST', 'PUT', 'OPTIONS']) {
        expectRawError(await ask(`${method} ${path}`), 'unknown_path')
        expectPage(await ask(`${method} ${path}`, HTML), 404)
      }
    }
    // The API is the API however its address is written, also for a browser.
    for (const path of ['/v1', '/v1/nothing', '/%76%31/nothing', '/v%31?x', 'http://a.example/%761/nothing'])
      for (const method of ['GET', 'POST']) expectRawError(await ask(`${method} ${path}`, HTML), 'unknown_path')
    for (const path of ['/%76%31/pets', '/%6Civez', '/openapi%2Ejson'])
      expectRawError(await ask(`DELETE ${path}`, HTML), 'method_not_allowed')
    const asset = await ask('GET /assets/nothing.css')
    assert.deepEqual([asset.status, asset.headers.get('content-type')], [404, PAGE])
  })

  it('that breaks the rules of HTTP gets the Error body, or a page for people unless its headers cannot be read', async () => {
    for (const path of ['/', '/sign-in', '/assets/console.css', '/livez', '/nothing']) {
      for (const accept of ['', HTML])
        expectRawError(await ask(`GET ${path}`, `${accept}no colon\r\n`), 'malformed_request')
      for (const [header, code, status, message] of [
        [HOST, 'malformed_request', 400, /<p>The Host header was sent twice\.</],
        ['Expect: 200-ok\r\n', 'expectation_failed', 417, /<p>The Expect header takes only 100-continue/],
        ['Transfer-Encoding: gzip\r\n', 'malformed_request', 400, /<p>The request is not well-formed HTTP: /],
      ] as const) {
        expectRawError(await ask(`GET ${path}`, header), code)
        const shown = await ask(`GET ${path}`, HTML + header)
        if (path === '/livez') expectRawError(shown, code)
        else assert.match(expectPage(shown, status), message)
      }
    }
  })

  it('keeps its address out of the Referer of others, whatever is answered: that of a link has its token', async () => {
    const statuses = new Set<number>()
    for (const [method, headers, body] of [
      ['GET', ''],
      ['DELETE', ''],
      ['POST', `${FORM}Content-Length: 3\r\n`, 'a=b'],
      ['POST', `${FORM}Content-Length: 20000\r\n`, 'a'.repeat(20_000)],
      ['POST', 'Content-Length: 3\r\n', 'a=b'],
      ['GET', HOST],
      ['GET', 'Transfer-Encoding: gzip\r\n'],
      ['GET', 'Expect: 200-ok\r\n'],
      ['GET', `X: ${'x'.repeat(20_000)}\r\n`],
    ] as const)
      for (const accept of ['', HTML]) {
        const answer = await ask(`${method} /link?token=x`, accept + headers, body)
        statuses.add(answer.status)
        assert.equal(answer.headers.get('referrer-policy'), 'strict-origin', `${method} ${accept}: ${answer.status}`)
      }
    assert.deepEqual(statuses, new Set([404, 405, 403, 413, 415, 400, 417, 431]))
  })

  it('is for no other origin, unlike the health checks and the document', async () => {
    for (const [path, allowed] of Object.entries({
      '/': undefined,
      '/assets/console.css': undefined,
      '/sign-in': undefined,
      '/livez': '*',
      '/openapi.json': '*',
    })) {
      const { headers } = await ask(`GET ${path}`, 'Origin: https://a.example\r\n')
      assert.equal(headers.get('access-control-allow-origin'), allowed, path)
    }
    const { status, headers } = await ask('GET /nothing', `${HTML}Origin: https://a.example\r\n`)
    assert.deepEqual([status, headers.get('access-control-allow-origin')], [404, undefined])
  })

  describe('with a form', () => {
    const large = 'a'.repeat(20_000)
    const chunked = (body: string) => `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
    const typed = (type: string) => `Content-Type: ${type}\r\nContent-Length: 3\r\n`
    for (const [what, status, headers, body] of [
      ['and no body', 403, '', ''],
      ['of its type, without a length', 403, FORM, ''],
      ['of no bytes', 403, 'Content-Length: 0\r\n', ''],
      ['without a CSRF token', 403, `${FORM}Content-Length: 3\r\n`, 'a=b'],
      ['in chunks', 403, `${FORM}Transfer-Encoding: chunked\r\n`, chunked('a=b')],
      ['with capitals in its type', 403, typed('Application/X-WWW-Form-URLencoded ; charset=UTF-8'), 'a=b'],
      ['from another site', 403, `${FORM}Content-Length: 3\r\nSec-Fetch-Site: cross-site\r\n`, 'a=b'],
      ['without a type', 415, 'Content-Length: 3\r\n', 'a=b'],
      ['of another type', 415, typed('text/plain'), 'a=b'],
      ['of a type that only begins like it', 415, typed('application/x-www-form-urlencodedx'), 'a=b'],
      ['of a type that only ends like it', 415, typed('text/application/x-www-form-urlencoded'), 'a=b'],
      ['that is too large', 413, `${FORM}Content-Length: 20000\r\n`, large],
      ['that is too large, in chunks', 413, `${FORM}Transfer-Encoding: chunked\r\n`, chunked(large)],
    ] as const)
      it(`${what}: ${status}, as a page`, async () => {
        const answer = await ask('POST /sign-in', headers, body)
        assert.deepEqual([answer.status, answer.headers.get('content-type')], [status, PAGE])
        assert.match(answer.headers.get('content-security-policy') ?? '', /^default-src 'none'/)
        assert.equal(answer.headers.get('x-frame-options'), 'DENY')
      })

    it('that breaks off changes nothing, and is no fault of the service', async () => {
      {
        using connection = new RawConnection(petstore.url)
        connection.send(`POST /sign-in HTTP/1.1\r\n${HOST}${FORM}Content-Length: 30\r\n\r\na=b`)
        await until(() => connection.socket.bytesWritten > 0)
      }
      assert.equal((await ask('GET /livez')).status, 200)
      assert.deepEqual(
        petstore.logged.filter(({ level, status }) => level === 'error' || Number(status) >= 500),
        [],
      )
    })
  })
})

describe('A page behind a proxy', () => {
  async function ask(url: string, path: string, headers: string): Promise<RawAnswer> {
    using connection = new RawConnection(url)
    connection.send(`GET ${path} HTTP/1.1\r\n${HOST}${headers}\r\n`)
    return await connection.answer()
  }

  it('that is trusted: the address, protocol and host are those that the proxy names', async () => {
    await using petstore = await startPetstore({ env: { PETSTORE_TRUST_PROXY: 'loopback' } })
    const addresses: Record<string, string> = {
      '192.0.2.7': '192.0.2.7',
      '192.0.2.7, 127.0.0.1': '192.0.2.7',
      '192.0.2.7, 198.51.100.1': '198.51.100.1',
      '198.51.100.1,192.0.2.7 ,127.0.0.2': '192.0.2.7',
      '127.0.0.1': '127.0.0.1',
      '192.0.2.7:4711': '192.0.2.7',
      '192.0.2.7:4711, 127.0.0.1:80': '192.0.2.7',
      '[2001:db8::7]:4711': '2001:db8::7',
      '2001:db8::7, [::1]': '2001:db8::7',
      '2001:db8::7:4711': '2001:db8::7:4711',
      'unknown:4711': 'unknown:4711',
    }
    const loggedOf = (id: string | undefined) => petstore.logged.find(({ requestId }) => requestId === id)
    for (const [forwarded, address] of Object.entries(addresses)) {
      for (const path of ['/', '/livez', '/nothing']) {
        const id = (await ask(petstore.url, path, `X-Forwarded-For: ${forwarded}\r\n`)).headers.get('request-id')
        await until(() => loggedOf(id) !== undefined)
        assert.equal(loggedOf(id)?.['address'], address, forwarded)
      }
    }
    const proto = 'X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: http, https\r\n'
    const secure = await ask(petstore.url, '/sign-in', proto)
    assert.match(secure.headers.get('set-cookie') ?? '', /^__Host-petstore=.*; Secure$/)
    const hosts = `${proto}X-Forwarded-Host: 192.0.2.99, 192.0.2.9:7\r\n`
    assert.ok((await ask(petstore.url, '/', hosts)).body.includes('https://192.0.2.9:7/v1'))
    assert.ok((await ask(petstore.url, '/openapi.json', hosts)).body.includes('https://192.0.2.9:7/v1'))
    const foreign = `${proto}X-Forwarded-Host: evil.example\r\n`
    assert.ok((await ask(petstore.url, '/', foreign)).body.includes('https://HOST/v1'))
  })

  it('that is not trusted: nothing that it names counts', async () => {
    await using petstore = await startPetstore({ env: { PETSTORE_TRUST_PROXY: '192.0.2.1' } })
    const forwarded =
      'X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: 192.0.2.99\r\nRequest-Id: direct\r\n'
    for (const path of ['/', '/sign-in']) {
      const { headers, body } = await ask(petstore.url, path, forwarded)
      assert.ok(!body.includes('https://') && !body.includes('192.0.2.99'), path)
      assert.doesNotMatch(headers.get('set-cookie') ?? '', /Secure/)
    }
    const addresses = () => petstore.logged.flatMap((line) => (line['requestId'] === 'direct' ? [line['address']] : []))
    await until(() => addresses().length === 2)
    assert.deepEqual(addresses(), ['127.0.0.1', '127.0.0.1'])
  })
})
