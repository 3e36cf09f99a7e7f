// npm run drill image: builds deploy/Dockerfile with buildah and runs the image with podman, read-only and unprivileged (as root).
// Fails if the container is not healthy, can write outside its volume, does not shut down gracefully on SIGTERM, or loses animals.
// --plant gives the second container an empty volume, and then the drill must fail.
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../test/harness/connections/free-port.ts'
import { makeKey } from '../../test/harness/programs/instance.ts'
import { run } from '../../test/harness/programs/processes.ts'
import { say } from '../../test/harness/say.ts'
import { until } from '../../test/harness/until.ts'
import { makeBaseImage, MMDEBSTRAP, PODMAN } from './base-image.ts'
import { conduct } from './conduct.ts'
import { requirePrograms } from './debian.ts'

const BUILDAH = '/usr/bin/buildah'
const RUNC = '/usr/sbin/runc'
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const DOCKERFILE = join(ROOT, 'deploy/Dockerfile')
const PLATFORM = `linux-${process.arch}`
const NAME = `petstore-drill-${process.pid}`

const podman = (words: readonly string[], input = '') => run(PODMAN, [`--runtime=${RUNC}`, ...words], {}, input)
const petstore = (words: readonly string[], input = '') => podman(['exec', '-i', NAME, 'petstore', ...words], input)

function build(): void {
  say('Building the executable and the image')
  run('npm', ['--prefix', ROOT, 'run', 'build:executables', '--', PLATFORM])
  // Isolation by chroot also works inside a container. Only Docker's image format has the health check.
  const words = [
    '--isolation=chroot',
    '--network=host',
    '--format=docker',
    '--pull-never',
    `--build-arg=PLATFORM=${PLATFORM}`,
  ]
  run(BUILDAH, ['build', ...words, '--file', DOCKERFILE, '--tag', NAME, join(ROOT, 'executables')])
}

/** Starts a container on this volume and waits until it is ready. */
async function serve(volume: string): Promise<string> {
  const port = String(await freePort())
  const confined = ['--read-only', '--cap-drop=all', '--security-opt=no-new-privileges']
  // By default podman raises limits, which is not allowed if the drill itself runs in a container.
  const limits = ['--ulimit=nofile=1024:1024', '--ulimit=nproc=1024:1024']
  const settings = { HOST: '127.0.0.1', PORT: port, PETSTORE_ENVIRONMENT: 'staging' }
  const env = Object.entries(settings).map(([name, value]) => `--env=${name}=${value}`)
  podman([
    'run',
    '--detach',
    '--name',
    NAME,
    '--network=host',
    ...confined,
    ...limits,
    ...env,
    `--volume=${volume}:/data`,
    NAME,
  ])
  const url = `http://127.0.0.1:${port}`
  await until(async () => (await fetch(`${url}/readyz`)).ok, 'the container is ready', 60_000)
  return url
}

/** Stops the container with SIGTERM and returns its exit code. */
function stop(): string {
  podman(['stop', '--time=30', NAME])
  const code = podman(['inspect', '--format={{.State.ExitCode}}', NAME]).trim()
  podman(['rm', NAME])
  return code
}

const succeeds = (words: readonly string[]) => {
  try {
    podman(words)
    return true
  } catch {
    return false
  }
}

requirePrograms([MMDEBSTRAP, BUILDAH, PODMAN, RUNC], ['mmdebstrap', 'buildah', 'podman', 'runc'])
await conduct({}, async ({ folder, plant }) => {
  makeBaseImage(folder)
  try {
    build()
    const url = await serve(NAME)
    const { key } = await makeKey(petstore)
    const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
    const created = await fetch(`${url}/v1/pets`, { method: 'POST', headers, body: '{"name":"Rex","categoryId":1}' })
    const checks: Record<string, boolean> = {
      'health check passes': succeeds(['healthcheck', 'run', NAME]),
      'runs as a user of its own': podman(['exec', NAME, 'id', '-u']).trim() === '10001',
      'cannot write to itself': !succeeds(['exec', NAME, 'touch', '/usr/local/bin/petstore']),
      'adds an animal': created.status === 201,
      'SIGTERM ends it with 0': stop() === '0',
    }
    const again = await serve(plant ? `${NAME}-empty` : NAME)
    const listed = await fetch(`${again}/v1/pets`, { headers })
    checks['the volume survives'] = listed.ok && ((await listed.json()) as { name: string }[])[0]?.name === 'Rex'
    const size = Math.round(Number(podman(['image', 'inspect', '--format={{.Size}}', NAME])) / 1e6)
    const versions = [run(BUILDAH, ['--version']), podman(['--version'])].map((line) => line.trim())
    process.stdout.write(`${versions.join(', ')}; the image has ${size} MB\n`)
    for (const [check, held] of Object.entries(checks)) process.stdout.write(`${held ? 'yes' : 'NO '} ${check}\n`)
    return Object.values(checks).every(Boolean)
  } finally {
    for (const words of [
      ['rm', '--force', NAME],
      ['volume', 'rm', '--force', NAME, `${NAME}-empty`],
      ['rmi', '--force', NAME],
    ])
      succeeds(words)
  }
})
