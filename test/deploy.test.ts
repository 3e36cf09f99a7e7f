// The files in deploy/ keep up with the code: the Node.js version, the settings, the files that the image needs.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { parseEnv } from 'node:util'
import { SETTINGS } from '../src/config.ts'
import { ERRORS } from '../src/contract/errors.ts'

const read = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')

describe('the deployment', () => {
  it('runs the image on the Node.js that package.json pins', () => {
    const { optionalDependencies } = JSON.parse(read('package.json')) as {
      optionalDependencies: Record<string, string>
    }
    const [, version] = /^ARG NODE_VERSION=(.+)$/m.exec(read('deploy/Dockerfile')) ?? []
    assert.deepEqual(new Set(Object.values(optionalDependencies)), new Set([version]))
  })

  it('copies into the image only what its builder is sent', () => {
    const sent = [...read('deploy/Dockerfile.dockerignore').matchAll(/^!(.+)$/gm)].map(([, path]) => path)
    const copied = [...read('deploy/Dockerfile').matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, paths]) =>
      paths!.split(' '),
    )
    assert.deepEqual(new Set(copied), new Set(sent))
  })

  it('closes sign-up, whatever the settings around it', () => {
    assert.match(read('deploy/petstore.service'), /^Environment=PETSTORE_SIGNUP=closed$/m)
    assert.match(read('deploy/compose.yaml'), /^ {4}PETSTORE_SIGNUP: \$\{PETSTORE_SIGNUP:-closed\}$/m)
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
    const folder = mkdtempSync(join(tmpdir(), 'petstore-deploy-'))
    try {
      cpSync(new URL('../deploy/env.example', import.meta.url), join(folder, 'deploy/env.example'))
      execFileSync('sh', ['-euc', block.replace('pets.example.com ', 'pets.test ')], { cwd: folder })
      const { POSTGRES_PASSWORD, PETSTORE_BASE_URL, PETSTORE_DOMAIN } = parseEnv(
        readFileSync(join(folder, 'deploy/.env'), 'utf8'),
      )
      assert.match(POSTGRES_PASSWORD!, /^[0-9a-f]{64}$/)
      assert.deepEqual([PETSTORE_DOMAIN, PETSTORE_BASE_URL], ['pets.test', 'https://pets.test/v1'])
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it('lets an instance drain, finish and end before it is killed', () => {
    const unit = read('deploy/petstore.service')
    const seconds = (text: string, pattern: RegExp) => Number(pattern.exec(text)?.[1])
    assert.ok(
      seconds(unit, /^TimeoutStopSec=(\d+)$/m) > seconds(unit, /^Environment=PETSTORE_DRAIN_SECONDS=(\d+)$/m) + 10,
    )
    const [compose, proxy] = [read('deploy/compose.yaml'), read('deploy/Caddyfile')]
    const drain = seconds(compose, /PETSTORE_DRAIN_SECONDS: (\d+)$/m)
    assert.ok(seconds(compose, /stop_grace_period: (\d+)s$/m) > drain + 10)
    assert.ok(drain >= 3 * seconds(proxy, /health_interval (\d+)s$/m), 'the proxy asks several times during the drain')
  })

  it('has a proxy that answers with an error code of the service', () => {
    const [, body = ''] = /respond `(\{.*\})` 503/.exec(read('deploy/Caddyfile')) ?? []
    const { code, status } = JSON.parse(body) as { code: keyof typeof ERRORS; status: number }
    assert.equal(ERRORS[code].status, status)
  })

  it('names only settings that exist', () => {
    const known = new Set(Object.values(SETTINGS).map(({ variable }) => variable))
    for (const file of ['deploy/Dockerfile', 'deploy/compose.yaml', 'deploy/petstore.service', 'deploy/README.md']) {
      for (const [name] of read(file).matchAll(/\b(?:PETSTORE_[A-Z_]+|DATABASE_URL)\b/g)) {
        assert.ok(
          known.has(name) || name === 'PETSTORE_DOMAIN' || name === 'PETSTORE_UPSTREAMS',
          `${file} names ${name}`,
        )
      }
    }
  })
})
