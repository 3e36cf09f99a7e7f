// The files in deploy/ keep up with the code, and with each other.
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempDisposableSync,
  readdirSync,
  readFileSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parseEnv } from 'node:util'
import type { Page } from '@playwright/test'
import { SETTINGS } from '../../src/config.ts'
import { type ErrorBody } from '../../src/contract/errors.ts'
import { createHealth } from '../../src/http/lifecycle.ts'
import { until } from '../harness/until.ts'
import { nginxOptions, PROGRAMS, PROXIES } from '../harness/deployment/proxy-servers.ts'
import { deployed } from '../harness/deployment/deployed.ts'
import { askPostgres } from '../harness/databases/ask-postgres.ts'
import { buildManifests, hasKubectl, prometheusRule } from '../harness/deployment/manifests.ts'
import { newPostgresDatabase } from '../harness/databases/engines.ts'
import { startPostgres } from '../harness/databases/postgres-server.ts'
import { keptIn, killAll } from '../harness/programs/processes.ts'
import { CERTIFICATE, KEY } from '../harness/connections/test-certificate.ts'
import { findChromium, launchChromium } from '../browser/chromium.ts'
import { Folder, SEARCH_PATH } from '../harness/programs/command.ts'
import { INVITED, startPetstore } from '../harness/harness.ts'
import { commandsOn } from '../harness/programs/in-process-command.ts'

/** What a browser accepts. */
const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

const temporaryFolder = () => mkdtempDisposableSync(join(tmpdir(), 'petstore-deploy-'))

/** The options that let a proxy check its file, started in a folder with a certificate. The path of a socket may not be long. */
const PROXY_CHECKS: Record<keyof typeof PROGRAMS, (folder: string, instances: 'one' | 'two') => string[]> = {
  nginx(folder, instances) {
    // The check binds its sockets, and only root may bind port 443.
    const site = deployed('nginx.conf', instances)
      .replaceAll(/\/etc\/ssl\/private\/|\/var\/log\/nginx\//g, '')
      .replace('listen 443 ', 'listen unix:socket ')
    return ['-t', ...nginxOptions(folder, site)]
  },
  HAProxy(folder, instances) {
    writeFileSync(join(folder, 'haproxy.cfg'), deployed('haproxy.cfg', instances).replaceAll('/etc/haproxy', '.'))
    return ['-c', '-f', join(folder, 'haproxy.cfg')]
  },
  Caddy() {
    const file = fileURLToPath(new URL('../../deploy/Caddyfile', import.meta.url))
    return ['validate', '--adapter', 'caddyfile', '--config', file]
  },
}

const NAMES = Object.keys(PROGRAMS) as (keyof typeof PROGRAMS)[]

/** Why a test of a proxy is left out: false if its program is there. */
const skipWithout = (name: keyof typeof PROGRAMS) => !existsSync(PROGRAMS[name]) && `${name} is not installed`

/** The manifests of Kubernetes, by file. */
const MANIFESTS = globSync('deploy/kubernetes/**/*.yaml', { cwd: new URL('../..', import.meta.url) })
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
    cpSync(new URL('../../deploy/env.example', import.meta.url), join(folder.path, 'deploy/env.example'))
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
    assert.match(read('.gitignore'), /^secret\.env\nowner-secret\.env$/m)
    const texts = MANIFESTS.map(read).join('')
    assert.doesNotMatch(texts, /postgres:\/\/|kind: Secret|secretRef/)
    const references = all(texts, /secretKeyRef: \{ name: petstore-(.+), key: DATABASE_URL \}/g)
    assert.deepEqual(references, ['database', 'owner'])
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
    for (const name of NAMES) {
      it(`has a file for ${instances} that ${name} accepts`, { skip: skipWithout(name) }, () => {
        using folder = temporaryFolder()
        writeFileSync(join(folder.path, 'petstore.pem'), CERTIFICATE + KEY)
        const { status, stdout, stderr } = spawnSync(PROGRAMS[name], PROXY_CHECKS[name](folder.path, instances), {
          cwd: folder.path,
          env: { ...keptIn(folder.path), PETSTORE_INSTANCES: instances },
          encoding: 'utf8',
        })
        assert.equal(status, 0, stdout + stderr)
      })
    }
  }

  for (const name of NAMES) {
    it(
      `learns from ${name} that a client has gone; people get a page, and programs an Error body, if no instance answers`,
      { skip: skipWithout(name) },
      async (test) => {
        using folder = temporaryFolder()
        test.after(killAll)
        let isReady = true
        const leaving = new AbortController()
        let hasGone = false
        const instance = createServer(({ socket, url }, response) => {
          if (url === '/held') {
            leaving.abort()
            response.once('close', () => (hasGone = true))
            return
          }
          // With its connection kept, HAProxy would close that of the client without an answer, for it to try again.
          if (isReady) response.setHeader('Connection', 'close').end()
          else socket.destroy()
        })
        test.after(() => instance.close().closeAllConnections())
        await once(instance.listen(0, '127.0.0.1'), 'listening')
        const url = await PROXIES[name](folder.path, [(instance.address() as AddressInfo).port])
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
        await assert.rejects(fetch(`${url}/held`, { signal: leaving.signal }), /abort/)
        // Well before the proxy's own time limit of 40 s.
        await until(() => hasGone, 'the instance learns that the client has gone', 20_000)
        instance.close().closeAllConnections()
        await assertTypes()
      },
    )
  }

  const chromium = findChromium()
  const skip = chromium === undefined && 'no Chromium was found'
  it('lets no log have the token of a link, whatever is away when a browser opens it', { skip }, async (test) => {
    using folder = temporaryFolder()
    test.after(killAll)
    const server = await startPostgres()
    test.after(() => server.end())
    const petstore = await startPetstore({ database: (await newPostgresDatabase(server.url)).url })
    test.after(() => petstore.stop())
    const browser = await launchChromium(chromium!)
    test.after(() => browser.close())
    await petstore.accounts.setRole(petstore.account, 'manager', 'console')
    const token = (await petstore.accounts.makeLink(petstore.account, INVITED))!
    const proxies = NAMES.filter((name) => !skipWithout(name)).map((name) => {
      mkdirSync(join(folder.path, name))
      return PROXIES[name](join(folder.path, name), [Number(new URL(petstore.url).port)])
    })
    const urls = [petstore.url, ...(await Promise.all(proxies))]
    // A tab for each path, since a new one costs more than the page.
    const tabs = await Promise.all(Array.from({ length: 4 }, () => browser.newPage()))
    const open = async (page: Page, address: string, status: number) => {
      const answer = (await page.goto(address))!
      const failures = JSON.stringify(petstore.logged.filter(({ level }) => level !== 'info'))
      assert.deepEqual(
        [answer.status(), answer.headers()['referrer-policy']],
        [status, 'strict-origin'],
        `${address}: ${failures}`,
      )
      // What a browser may ask for with any page, as for its icon.
      const [request] = await Promise.all([
        page.waitForRequest(/shown/),
        page.evaluate("new Promise((end) => Object.assign(new Image(), { onerror: end, src: '/shown' }))"),
      ])
      assert.equal((await request.allHeaders())['referer'], new URL('/', address).href)
    }
    // Refused by its headers alone.
    const overflow = (address: string) =>
      fetch(address, { headers: { Cookie: 'x'.repeat(40_000) } }).catch(() => undefined)
    const openAll = async (status: number, other: number) => {
      const paths = { '/link': status, '/%6cink': status, '//link': other, '/link/': other }
      for (const url of urls)
        await Promise.all([
          ...Object.entries(paths).map(([path, each], nth) => open(tabs[nth]!, `${url}${path}?token=${token}`, each)),
          overflow(`${url}/link?token=${token}`),
        ])
    }
    await openAll(200, 404)
    await server.stop()
    await openAll(503, 404)
    await petstore.stop()
    urls.shift()
    await openAll(503, 503)
    await killAll()
    const files = readdirSync(folder.path, { recursive: true, encoding: 'utf8' }).filter((name) =>
      name.endsWith('.log'),
    )
    const logs = files.map((name) => [name, readFileSync(join(folder.path, name), 'utf8')] as const)
    logs.push(['service', JSON.stringify(petstore.logged)])
    for (const [name, logged] of logs) assert.ok(!logged.includes(token.slice(5, 30)), name)
    for (const [name, logged] of logs) if (!name.endsWith('nginx.log')) assert.match(logged, /shown/, name)
  })

  const skipUnits = spawnSync('systemd-analyze', ['--version']).status === 0 ? false : 'systemd is not installed'
  it('has units that systemd accepts without a complaint', { skip: skipUnits }, () => {
    using folder = temporaryFolder()
    const files = readdirSync(new URL('../../deploy', import.meta.url)).filter((name) =>
      /\.(service|socket|timer)$/.test(name),
    )
    const write = (name: string, file: string) =>
      writeFileSync(join(folder.path, name), deployed(file).replaceAll('/usr/local/bin/petstore', '/bin/true'))
    for (const file of files) write(file, file)
    write('petstore@.service', 'petstore.service')
    const { stdout, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', ...files, 'petstore@8081.service'], {
      env: { ...keptIn(folder.path), SYSTEMD_UNIT_PATH: `${folder.path}:/lib/systemd/system` },
      encoding: 'utf8',
    })
    const complaints = (stdout + stderr).split('\n').filter((line) => line.includes('petstore'))
    assert.deepEqual(complaints, [])
  })

  it('makes a backup every night, replaces none of the same day, and keeps two weeks of them', async () => {
    await using folder = await Folder.create()
    using metrics = temporaryFolder()
    await folder.commands.call(0, 'seed --count 3')
    const unit = deployed('petstore-backup.service')
      .replaceAll(/(%|\$)\1/g, '$1')
      .replaceAll('/var/lib/petstore-backups', '.')
      .replaceAll('/var/cache/petstore-metrics', join('..', basename(metrics.path)))
      .replaceAll('/usr/local/bin/petstore', 'petstore')
    const commands = [...unit.matchAll(/^ExecStart=(.+)$/gm)].map(([, command = '']) => command)
    const age = (name: string, days: number) => {
      const time = Date.now() / 1000 - days * 86_400
      utimesSync(folder.write(name, ''), time, time)
    }
    age('petstore-2026-01-01.db', 14.1)
    age('petstore-2026-01-02.db.1.partial', 14.1)
    age('petstore-2026-01-03.db', 13.9)
    age('other.db', 99)
    const [, ended = ''] = /^ExecStopPost=(.+)$/m.exec(unit) ?? []
    const run = (command: string, TZ = 'UTC') =>
      execFileSync('sh', ['-c', command], { cwd: folder.path, env: { PATH: SEARCH_PATH, TZ }, stdio: 'pipe' })
    const others = new Set(folder.names())
    // By the name, an hour before the next one.
    run(commands[0]!, 'EARLIER1')
    const first = folder.names().find((name) => !others.has(name))!
    const content = readFileSync(join(folder.path, first))
    assert.deepEqual(readdirSync(metrics.path), [], 'while the first backup runs, none is missing')
    run(ended)
    assert.equal(readFileSync(join(metrics.path, 'backup.prom'), 'utf8'), 'petstore_backup_timestamp_seconds 0\n')
    for (const command of [...commands, ended]) run(command)
    const [data, other, kept, today = '', ...more] = folder.names().filter((name) => name !== first)
    assert.deepEqual([data, other, kept, more], ['data', 'other.db', 'petstore-2026-01-03.db', []])
    assert.deepEqual(readFileSync(join(folder.path, first)), content, 'an earlier backup of the day stays')
    await folder.commands.call(0, `restore ${today} --database sqlite:again.db`)
    const [, at] =
      /^petstore_backup_timestamp_seconds (\d+)\n$/.exec(readFileSync(join(metrics.path, 'backup.prom'), 'utf8')) ?? []
    assert.ok(Math.abs(Number(at) - Date.now() / 1000) < 60)
    assert.match(unit, /^OnFailure=petstore-failed@%n\.service$/m)
  })

  it('has one set of alerts: the rules of Kubernetes are made from those of Prometheus, which promtool tries', () => {
    const made = read('deploy/kubernetes/monitoring/prometheus-rule.yaml')
    assert.equal(made, prometheusRule(), 'run npm run drill check-alerts')
    const tried = new Set(read('deploy/alerts.test.yaml').match(/(?<=alertname(?:: |="))\w+/g))
    const alerts = read('deploy/alerts.yaml').match(/(?<=- alert: )\w+/g)!
    assert.deepEqual(
      alerts.filter((alert) => !tried.has(alert)),
      [],
    )
    if (spawnSync('promtool', ['--version']).error !== undefined) return
    const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', 'deploy/alerts.test.yaml'], {
      cwd: new URL('../..', import.meta.url),
      encoding: 'utf8',
    })
    assert.equal(status, 0, stdout + stderr)
  })

  it('waits for the migration of Kubernetes, and notices one that fails', () => {
    for (const [conditions, status] of [
      [['', '', 'SuccessCriteriaMet Complete'], 0],
      [['', 'FailureTarget Failed'], 1],
    ] as const) {
      using folder = temporaryFolder()
      writeFileSync(join(folder.path, 'left'), conditions.join('\n') + '\n')
      const kubectl = `#!/bin/sh\n[ "$1" = get ] || { echo the log; exit; }\nhead -n 1 left; sed -i 1d left\n`
      for (const [name, script] of [
        ['kubectl', kubectl],
        ['sleep', '#!/bin/sh\n'],
      ] as const)
        writeFileSync(join(folder.path, name), script, { mode: 0o755 })
      const script = fileURLToPath(new URL('../../deploy/kubernetes/postgres/wait-for-migration.sh', import.meta.url))
      const env = { PATH: `${folder.path}:${process.env['PATH']}` }
      const ended = spawnSync('sh', [script], { cwd: folder.path, env, encoding: 'utf8' })
      assert.deepEqual([ended.status, ended.stderr], [status, status === 0 ? '' : 'the log\n'])
    }
  })

  it('serves as a role that does not own the tables, by the file of Kubernetes', async () => {
    await using parts = new AsyncDisposableStack()
    const server = parts.adopt(await startPostgres(), (started) => started.end())
    const database = parts.use(await newPostgresDatabase(server.url))
    await askPostgres(
      database.url,
      "CREATE ROLE petstore_owner LOGIN PASSWORD 'PASSWORD'; GRANT ALL ON SCHEMA public TO petstore_owner",
    )
    const as = (role: string) => database.url.replace(/\/\/[^@]+@/, `//${role}:PASSWORD@`)
    await askPostgres(
      database.url,
      read('deploy/kubernetes/postgres/roles.sql')
        .replaceAll('petstore', 'store')
        .replace(/^(?=ALTER)/gm, 'SET ROLE petstore_owner; '),
    )
    for (const [role, words] of [
      ['petstore_owner', 'migrate --environment production'],
      ['store', 'doctor --environment production'],
    ] as const) {
      const { code, stdout, stderr } = await commandsOn(as(role)).run(words)
      assert.equal(code, 0, stdout + stderr)
      assert.doesNotMatch(stdout, /^problem/m)
    }
    await assert.rejects(askPostgres(as('store'), 'DROP TABLE pets'), /must be owner/)
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
