// The files in deploy/ keep up with the code, and with each other.
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, globSync, mkdtempDisposableSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { parseEnv } from 'node:util'
import { SETTINGS } from '../src/config.ts'
import { type ErrorBody, ERRORS } from '../src/contract/errors.ts'
import { createHealth } from '../src/http/lifecycle.ts'
import { PROXIES } from '../assurance/drills/proxy-servers.ts'
import { deployed } from '../assurance/harness/deployed.ts'
import { buildManifests, hasKubectl } from '../assurance/harness/manifests.ts'
import { killAll } from '../assurance/harness/processes.ts'
import { CERTIFICATE, KEY } from '../assurance/harness/test-certificate.ts'
import { BIN, Folder } from './command.ts'

/** What a browser accepts. */
const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'

const read = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')

const temporaryFolder = () => mkdtempDisposableSync(join(tmpdir(), 'petstore-deploy-'))

/** Lets a proxy check its file, in a folder with a certificate. */
const PROXY_CHECKS = {
  nginx(folder: string, instances: 'one' | 'two') {
    // The check binds its sockets, and only root may bind port 443.
    const site = deployed('nginx.conf', instances)
      .replaceAll('/etc/ssl/private', folder)
      .replace('listen 443 ', `listen unix:${folder}/socket `)
    writeFileSync(join(folder, 'nginx.conf'), `pid ${folder}/pid; events {}\nhttp { access_log off;\n${site}}\n`)
    return run('nginx', ['-t', '-p', folder, '-e', 'stderr', '-c', join(folder, 'nginx.conf')])
  },
  haproxy(folder: string, instances: 'one' | 'two') {
    writeFileSync(join(folder, 'haproxy.cfg'), deployed('haproxy.cfg', instances).replaceAll('/etc/haproxy', folder))
    return run('haproxy', ['-c', '-f', join(folder, 'haproxy.cfg')])
  },
  caddy(folder: string, instances: 'one' | 'two') {
    const file = new URL('../deploy/Caddyfile', import.meta.url).pathname
    const env = { ...process.env, HOME: folder, PETSTORE_INSTANCES: instances }
    return run('caddy', ['validate', '--adapter', 'caddyfile', '--config', file], env)
  },
}

function run(program: string, parameters: readonly string[], env: NodeJS.ProcessEnv = process.env) {
  return spawnSync(program, parameters, { env, encoding: 'utf8' })
}

/** The manifests of Kubernetes, by file. */
const MANIFESTS = globSync('deploy/kubernetes/**/*.yaml', { cwd: new URL('..', import.meta.url) })
const [BASE, PODS] = [read('deploy/kubernetes/base/kustomization.yaml'), read('deploy/kubernetes/base/petstore.yaml')]

describe('the deployment', () => {
  it('closes sign-up, whatever the settings around it', () => {
    assert.match(read('deploy/petstore.service'), /^Environment=PETSTORE_SIGNUP=closed$/m)
    assert.match(read('deploy/compose.yaml'), /^ {4}PETSTORE_SIGNUP: \$\{PETSTORE_SIGNUP:-closed\}$/m)
    assert.match(BASE, /^ +- PETSTORE_SIGNUP=closed$/m)
  })

  it('starts under systemd only with an environment that was chosen, also where the steps are pasted as they are', () => {
    assert.match(read('deploy/petstore.service'), /^EnvironmentFile=\/etc\/petstore\.env$/m)
    assert.match(
      read('deploy/README.md'),
      /^install .* \/etc\/petstore\.env <<END\nPETSTORE_ENVIRONMENT=production\n[^`]*^END\n[^`]*^systemctl enable --now/m,
    )
  })

  it('fills in the file of compose by the command in the README', () => {
    const [, block = ''] = /^## Compose\n\n```sh\n([^`]*?)^docker compose/m.exec(read('deploy/README.md')) ?? []
    using folder = temporaryFolder()
    cpSync(new URL('../deploy/env.example', import.meta.url), join(folder.path, 'deploy/env.example'))
    execFileSync('sh', ['-euc', block.replace('pets.example.com ', 'pets.test ')], { cwd: folder.path })
    const { POSTGRES_PASSWORD, PETSTORE_BASE_URL, PETSTORE_DOMAIN } = parseEnv(
      readFileSync(join(folder.path, 'deploy/.env'), 'utf8'),
    )
    assert.match(POSTGRES_PASSWORD!, /^[0-9a-f]{64}$/)
    assert.deepEqual([PETSTORE_DOMAIN, PETSTORE_BASE_URL], ['pets.test', 'https://pets.test/v1'])
  })

  it('lets an instance drain, finish, write its log and end before it is killed', () => {
    const [unit, compose, proxy] = [deployed('petstore.service'), deployed('compose.yaml'), deployed('Caddyfile')]
    const seconds = (text: string, pattern: RegExp) => Number(pattern.exec(text)?.[1])
    for (const [drain, limit] of [
      [seconds(unit, /^Environment=PETSTORE_DRAIN_SECONDS=(\d+)$/m), seconds(unit, /^TimeoutStopSec=(\d+)$/m)],
      [seconds(compose, /PETSTORE_DRAIN_SECONDS: (\d+)$/m), seconds(compose, /stop_grace_period: (\d+)s$/m)],
      [seconds(BASE, /PETSTORE_DRAIN_SECONDS=(\d+)$/m), seconds(PODS, /terminationGracePeriodSeconds: (\d+)$/m)],
    ] as const) {
      assert.ok(limit > drain + 15)
      assert.ok(drain >= 3 * seconds(proxy, /health_interval (\d+)s$/m), 'proxies ask several times during the drain')
    }
  })

  const addresses = (text: string) => text.replaceAll(/#.*/g, '').match(/127\.0\.0\.1:\d+/g)
  const snippet = (name: string) =>
    new RegExp(`^\\(${name}\\) \\{\\n(.*?)^\\}`, 'ms').exec(deployed('Caddyfile'))?.[1] ?? ''

  it('sends the requests for one instance where that listens, and takes it out of use at no time', () => {
    const [, address] = /^ListenStream=(.+)$/m.exec(deployed('petstore.socket')) ?? []
    assert.equal(
      `${SETTINGS.host.default}:${SETTINGS.port.default}`,
      address,
      'the unit listens there without the socket',
    )
    assert.match(deployed('Caddyfile'), /import \{\$PETSTORE_INSTANCES:one\}/)
    for (const text of [snippet('one'), deployed('nginx.conf'), deployed('haproxy.cfg')]) {
      assert.deepEqual(addresses(text), [address])
      assert.doesNotMatch(text.replaceAll(/#.*/g, ''), /readyz|check|fail_|observe/)
    }
  })

  it('sends the requests for two instances where those listen, and asks whether they are ready', () => {
    const [, units = ''] = /^systemctl enable --now (petstore@.+)$/m.exec(deployed('README.md')) ?? []
    const listening = [...units.matchAll(/petstore@(\d+)/g)].map(([, port]) => `${SETTINGS.host.default}:${port}`)
    assert.equal(listening.length, 2)
    assert.match(deployed('petstore.service'), /^Environment=PORT=%i$/m)
    for (const text of [snippet('two'), deployed('nginx.conf', 'two'), deployed('haproxy.cfg', 'two')])
      assert.deepEqual(addresses(text), listening)
    assert.match(snippet('two'), /^\thealth_uri \/readyz$/m)
    assert.match(deployed('haproxy.cfg', 'two'), /^ {2}option httpchk GET \/readyz$/m)
    const compose = deployed('compose.yaml')
    const [, port] = /^ +PORT=(\d+)/m.exec(deployed('Dockerfile')) ?? []
    const services = [...compose.matchAll(/^ {2}(\S+): \*petstore$/gm)].map(([, name]) => `${name}:${port}`)
    assert.match(compose, /^ +PETSTORE_INSTANCES: two$/m)
    assert.equal(/^ +PETSTORE_UPSTREAMS: (.+)$/m.exec(compose)?.[1], services.join(' '))
  })

  const all = (text: string, pattern: RegExp) => Array.from(text.matchAll(pattern), ([, found = '']) => found)

  it('probes pods where they answer, and runs them confined, as the user of the image', () => {
    const [, port] = /^ +PORT=(\d+)/m.exec(deployed('Dockerfile')) ?? []
    const [, adminPort] = /PETSTORE_ADMIN_PORT=(\d+)$/m.exec(BASE) ?? []
    assert.deepEqual(all(PODS, /name: (\w+, containerPort: \d+)/g), [
      `http, containerPort: ${port}`,
      `admin, containerPort: ${adminPort}`,
    ])
    const paths = Object.keys(createHealth(async () => undefined))
    const probes = all(PODS, /Probe:\n +httpGet: \{ path: (.+), port: admin \}/g)
    assert.deepEqual([probes.length, new Set(probes)], [3, new Set(paths)])
    const pods = PODS + read('deploy/kubernetes/postgres/postgres.yaml')
    const containers = all(pods, /^ +image: (.+)$/gm)
    const [, user, group] = /^USER (\d+):(\d+)$/m.exec(deployed('Dockerfile')) ?? []
    for (const line of [
      'runAsNonRoot: true',
      `runAsUser: ${user}`,
      `runAsGroup: ${group}`,
      'seccompProfile: { type: RuntimeDefault }',
      'allowPrivilegeEscalation: false',
      'readOnlyRootFilesystem: true',
      'capabilities: { drop: [ALL] }',
      'automountServiceAccountToken: false',
      'enableServiceLinks: false',
    ])
      assert.equal(pods.split(`${line}\n`).length - 1, containers.length, line)
  })

  it('takes the password of Kubernetes from a file that is not committed, and serves no other database without it', () => {
    assert.match(
      read('deploy/kubernetes/postgres/kustomization.yaml'),
      /name: petstore-database, envs: \[secret\.env\]/,
    )
    assert.match(read('.gitignore'), /^secret\.env$/m)
    const texts = MANIFESTS.map(read).join('')
    assert.doesNotMatch(texts, /postgres:\/\/|kind: Secret|secretRef/)
    const references = all(texts, /secretKeyRef: \{ name: petstore-database, key: (.+) \}/g)
    assert.deepEqual(references, ['DATABASE_URL', 'DATABASE_URL'])
  })

  for (const engine of ['postgres', 'sqlite'] as const) {
    const skip = hasKubectl ? false : 'kubectl is not installed'
    it(`has manifests for ${engine} that kubectl builds, with all that they refer to`, { skip }, () => {
      using folder = temporaryFolder()
      const built = buildManifests(folder.path, engine)
      // kustomize renames what it generates, and each reference to it.
      for (const name of all(
        built,
        /(?:configMapRef|secretKeyRef|persistentVolumeClaim):\n(?: +key: .+\n)? +(?:claimN|n)ame: (.+)$/gm,
      ))
        assert.ok(built.includes(`\n  name: ${name}\n`), name)
      assert.match(built, engine === 'postgres' ? /^ {2}replicas: 2$/m : /^ {2}replicas: 1\n[^]*^ {4}type: Recreate$/m)
    })
  }

  for (const instances of ['one', 'two'] as const) {
    for (const [program, check] of Object.entries(PROXY_CHECKS)) {
      const skip = spawnSync('which', [program]).status === 0 ? false : `${program} is not installed`
      it(`has a file for ${instances} that ${program} accepts`, { skip }, () => {
        using folder = temporaryFolder()
        writeFileSync(join(folder.path, 'petstore.pem'), CERTIFICATE + KEY)
        const { status, stdout, stderr } = check(folder.path, instances)
        assert.equal(status, 0, stdout + stderr)
      })
    }
  }

  for (const [name, startProxy] of Object.entries(PROXIES)) {
    const skip = spawnSync('which', [name.toLowerCase()]).status === 0 ? false : `${name} is not installed`
    it(
      `shows people a page, and programs an Error body, if the one instance behind ${name} does not answer`,
      { skip },
      async (test) => {
        using folder = temporaryFolder()
        test.after(killAll)
        let isReady = true
        const instance = createServer(({ socket }, response) => {
          // With its connection kept, HAProxy would close that of the client without an answer, for it to try again.
          if (isReady) response.setHeader('Connection', 'close').end()
          else socket.destroy()
        })
        test.after(() => instance.close().closeAllConnections())
        await once(instance.listen(0, '127.0.0.1'), 'listening')
        const url = await startProxy(folder.path, [(instance.address() as AddressInfo).port])
        const connections = new Set<string | null>()
        const typeAt = async (path: string, accept = BROWSER) => {
          const answer = await fetch(url + path, { headers: { Accept: accept } })
          connections.add(answer.headers.get('Connection'))
          const [type, body] = [answer.headers.get('Content-Type')!, await answer.text()]
          assert.deepEqual([answer.status, answer.headers.get('Retry-After')], [503, '1'])
          if (type === 'application/json') assert.equal((JSON.parse(body) as ErrorBody).status, 503)
          else assert.match(body, /^<!doctype html>.*<h1>The service is unavailable<\/h1>/)
          return type
        }
        const assertTypes = async () => {
          const asked = [typeAt('/keys?x'), typeAt('/v1x'), typeAt('/v1?x'), typeAt('/%76%31/pets'), typeAt('/', '*/*')]
          const [page, json] = ['text/html; charset=utf-8', 'application/json']
          assert.deepEqual(await Promise.all(asked), [page, page, json, json, json])
        }
        isReady = false
        await assertTypes()
        // It closes a connection after such an answer. Unless it says so, the client sends the next request on it.
        if (name === 'HAProxy') assert.deepEqual([...connections], ['close'])
        instance.close().closeAllConnections()
        await assertTypes()
      },
    )
  }

  const skipNginx = spawnSync('which', ['nginx']).status === 0 ? false : 'nginx is not installed'
  it('lets nginx log no token of a link, whether or not an instance answers', { skip: skipNginx }, async (test) => {
    using folder = temporaryFolder()
    test.after(killAll)
    const instance = createServer((_, response) => response.end())
    await once(instance.listen(0, '127.0.0.1'), 'listening')
    const url = await PROXIES['nginx']!(folder.path, [(instance.address() as AddressInfo).port])
    const askAll = () =>
      Promise.all(
        ['/link?token=secret', '/%6cink?token=secret', '//link?token=secret', '/keys?shown'].flatMap((path) =>
          [BROWSER, '*/*'].map(async (accept) => (await fetch(url + path, { headers: { Accept: accept } })).status),
        ),
      )
    assert.deepEqual(new Set(await askAll()), new Set([200]))
    instance.close().closeAllConnections()
    assert.deepEqual(new Set(await askAll()), new Set([503]))
    await killAll()
    for (const name of ['access.log', 'error.log']) {
      const logged = readFileSync(join(folder.path, 'logs', name), 'utf8')
      assert.match(logged, /shown/, name)
      assert.doesNotMatch(logged, /secret/, name)
    }
  })

  const skipUnits = spawnSync('systemd-analyze', ['--version']).status === 0 ? false : 'systemd is not installed'
  it('has units that systemd accepts without a complaint', { skip: skipUnits }, () => {
    using folder = temporaryFolder()
    const files = readdirSync(new URL('../deploy', import.meta.url)).filter((name) =>
      /\.(service|socket|timer)$/.test(name),
    )
    const write = (name: string, file: string) =>
      writeFileSync(join(folder.path, name), deployed(file).replaceAll('/usr/local/bin/petstore', '/bin/true'))
    for (const file of files) write(file, file)
    write('petstore@.service', 'petstore.service')
    const { stdout, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', ...files, 'petstore@8081.service'], {
      env: { ...process.env, SYSTEMD_UNIT_PATH: `${folder.path}:/lib/systemd/system` },
      encoding: 'utf8',
    })
    const complaints = (stdout + stderr).split('\n').filter((line) => line.includes('petstore'))
    assert.deepEqual(complaints, [])
  })

  it('makes a backup every night, also a second one of a day, and keeps two weeks of them', async () => {
    await using folder = await Folder.create()
    await folder.commands.call(0, 'seed --count 3')
    const unit = deployed('petstore-backup.service')
      .replaceAll(/(%|\$)\1/g, '$1')
      .replaceAll('/var/lib/petstore-backups', folder.path)
      .replaceAll('/usr/local/bin/petstore', BIN)
    const commands = [...unit.matchAll(/^ExecStart=(.+)$/gm)].map(([, command = '']) => command)
    const age = (name: string, days: number) => {
      const time = Date.now() / 1000 - days * 86_400
      utimesSync(folder.write(name, ''), time, time)
    }
    age('petstore-2026-01-01.db', 14.1)
    age('petstore-2026-01-02.db.1.partial', 14.1)
    age('petstore-2026-01-03.db', 13.9)
    age('other.db', 99)
    for (const command of [...commands, ...commands])
      execFileSync('sh', ['-c', command], { cwd: folder.path, stdio: 'pipe' })
    const [data, other, kept, today = '', ...more] = folder.names()
    assert.deepEqual([data, other, kept, more], ['data', 'other.db', 'petstore-2026-01-03.db', []])
    assert.match(today, /^petstore-\d{4}-\d\d-\d\d\.db$/)
    await folder.commands.call(0, `restore ${today} --database sqlite:again.db`)
  })

  it('has a proxy that answers with an error code of the service', () => {
    const [, body = ''] = /respond `(\{.*\})` 503/.exec(read('deploy/Caddyfile')) ?? []
    const { code, status } = JSON.parse(body) as { code: keyof typeof ERRORS; status: number }
    assert.equal(ERRORS[code].status, status)
  })

  it('names only settings that exist', () => {
    const known = new Set(Object.values(SETTINGS).map(({ variable }) => variable))
    const files = ['deploy/Dockerfile', 'deploy/compose.yaml', 'deploy/petstore.service', 'deploy/README.md']
    for (const file of [...files, ...MANIFESTS]) {
      for (const [name] of read(file).matchAll(/\b(?:PETSTORE_[A-Z_]+|DATABASE_URL)\b/g)) {
        assert.ok(
          known.has(name) ||
            ['PETSTORE_DOMAIN', 'PETSTORE_PLATFORM', 'PETSTORE_INSTANCES', 'PETSTORE_UPSTREAMS'].includes(name),
          `${file} names ${name}`,
        )
      }
    }
  })
})
