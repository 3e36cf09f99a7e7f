// The client as others get it: packed, installed into an empty project, run on every runtime.
import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { findChromium, launchChromium } from '../../test/browser/chromium.ts'
import { type Petstore, startPetstore } from '../../test/harness/harness.ts'
import { type OddServer, type Respond, startOddServer } from '../../client/test/odd-server.ts'
import { FOLDER, install, RUNTIMES, tool } from './runtimes.ts'

const CLIENT = join(FOLDER, '../../client')
const TSC = join(CLIENT, '../node_modules/.bin/tsc')

const EXPECTED = {
  created: '-9223372036854775808 9223372036854775807',
  listed: '1 true true',
  iterated: 'Høchst 🐕,Lowest',
  got: 'Høchst 🐕 9223372036854775807',
  notices: 'The Petstore operation getPet is deprecated and will be removed on 2030-12-05',
  invalid: 'InvalidRequestError invalid_pet true',
  unauthorized: 'AuthenticationError malformed_api_key true',
  timeout: 'TimeoutError timeout false',
  aborted: 'TimeoutError',
  redirected: 'UnexpectedResponseError unexpected_response false',
  unreachable: 'NetworkError network_error false',
}

/** Lets pages of any origin call, then responds. */
const crossOrigin =
  (respond: Respond): Respond =>
  (response, request) => {
    response
      .setHeader('Access-Control-Allow-Origin', '*')
      .setHeader('Access-Control-Allow-Headers', 'authorization, content-type, idempotency-key')
    if (request.method === 'OPTIONS') response.end()
    else respond(response, request)
  }
const hanging = crossOrigin((response) => response.writeHead(200, { 'Content-Type': 'application/json' }).write('['))
const redirecting = crossOrigin((response) => response.writeHead(302, { Location: '/v1/elsewhere' }).end())

/** Runs one of the README's blocks of commands in a new project. */
function installAsReadme(block: number, project: string): void {
  const blocks = [...readFileSync(join(CLIENT, 'README.md'), 'utf8').matchAll(/^```sh\n(.*?)^```/gms)]
  writeFileSync(join(project, 'package.json'), '{"type":"module","private":true}')
  execFileSync('sh', ['-ec', blocks[block]![1]!.replaceAll('/path/to/petstore', join(CLIENT, '..'))], {
    cwd: project,
    env: { ...process.env, npm_config_offline: 'true', npm_config_audit: 'false', npm_config_fund: 'false' },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}

describe('The installed package', () => {
  const project = mkdtempSync(join(tmpdir(), 'petstore-client-'))
  let tarball: string
  let service: Petstore
  let odd: { hanging: OddServer; redirecting: OddServer }
  let addresses: { baseUrl: string; apiKey: string; hangingUrl: string; redirectingUrl: string }

  before(async () => {
    install()
    rmSync(join(CLIENT, 'dist'), { recursive: true, force: true })
    installAsReadme(0, project)
    tarball = join(
      project,
      readdirSync(project).find((name) => name.endsWith('.tgz'))!,
    )
    for (const file of ['tour.js', 'run-tour.js']) copyFileSync(join(FOLDER, file), join(project, file))
    service = await startPetstore()
    odd = { hanging: await startOddServer(hanging), redirecting: await startOddServer(redirecting) }
    addresses = {
      baseUrl: `${service.url}/v1`,
      apiKey: service.key,
      hangingUrl: odd.hanging.baseUrl,
      redirectingUrl: odd.redirecting.baseUrl,
    }
  })
  after(async () => {
    for (const server of [odd.hanging, odd.redirecting, service]) await server[Symbol.asyncDispose]()
    rmSync(project, { recursive: true })
  })

  it('can be installed as a folder, too, which is built by that', async (test) => {
    const other = mkdtempSync(join(tmpdir(), 'petstore-client-folder-'))
    test.after(() => rmSync(other, { recursive: true }))
    rmSync(join(CLIENT, 'dist'), { recursive: true })
    installAsReadme(1, other)
    const program = "import('petstore-client').then(({ Petstore }) => console.log(typeof Petstore))"
    const { stdout } = await promisify(execFile)(process.execPath, ['-e', program], { cwd: other })
    assert.equal(stdout, 'function\n')
  })

  it('is well made: publint', () => {
    execFileSync(tool('publint'), ['run', tarball, '--strict'], { stdio: ['ignore', 'ignore', 'inherit'] })
  })

  it('has types that resolve: attw', () => {
    execFileSync(tool('attw'), [tarball, '--profile', 'esm-only', '--quiet'], { stdio: 'inherit' })
  })

  it('has types that check in strict mode, with the DOM alone; so do the examples of its README', () => {
    const examples = readFileSync(join(CLIENT, 'README.md'), 'utf8').matchAll(/^```ts\n(.*?)^```/gms)
    const code = Array.from(examples, ([, example]) => example).join('\n')
    assert.match(code, /new Petstore\(/)
    writeFileSync(join(project, 'readme.ts'), code)
    const words = [
      '--allowJs',
      '--checkJs',
      '--noEmit',
      '--strict',
      '--module',
      'nodenext',
      '--target',
      'es2022',
      '--lib',
      'es2022,dom',
      '--types',
      '',
      'tour.js',
      'readme.ts',
    ]
    execFileSync(TSC, words, { cwd: project, stdio: 'inherit' })
  })

  for (const [name, words] of Object.entries(RUNTIMES)) {
    it(`runs on ${name}`, async () => {
      const [program = '', ...options] = words()
      const { baseUrl, apiKey, hangingUrl, redirectingUrl } = addresses
      const { stdout, stderr } = await promisify(execFile)(
        program,
        [...options, 'run-tour.js', baseUrl, apiKey, hangingUrl, redirectingUrl],
        { cwd: project },
      )
      assert.deepEqual(JSON.parse(stdout), EXPECTED)
      assert.ok(stderr.includes(baseUrl) && !stderr.includes(apiKey), stderr)
    })
  }

  it('runs in Chromium, from a page of another origin', async () => {
    const executable = findChromium()
    assert.ok(executable, 'no Chromium was found; name one with CHROMIUM')
    const pages = createServer((request, response) => {
      const path = new URL(request.url!, 'http://page.example').pathname
      if (path === '/')
        response
          .setHeader('Content-Type', 'text/html')
          .end(
            '<script type="importmap">{"imports":{"petstore-client":"/node_modules/petstore-client/dist/petstore.js"}}</script>',
          )
      else if (path.endsWith('.js'))
        response.setHeader('Content-Type', 'text/javascript').end(readFileSync(join(project, path)))
      else response.writeHead(404).end()
    })
    await new Promise<void>((resolve) => pages.listen(0, '127.0.0.1', resolve))
    const browser = await launchChromium(executable)
    try {
      const page = await browser.newPage()
      await page.goto(`http://127.0.0.1:${(pages.address() as { port: number }).port}/`)
      const result = await page.evaluate(async (settings) => {
        const path = '/tour.js'
        const { tour } = (await import(path)) as { tour: (settings: object) => Promise<unknown> }
        return tour(settings)
      }, addresses)
      assert.deepEqual(result, EXPECTED)
    } finally {
      await browser.close()
      pages.closeAllConnections()
      pages.close()
    }
  })
})
