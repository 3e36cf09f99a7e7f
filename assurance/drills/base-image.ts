// Builds a replacement for the official Node.js image from Debian packages and the pinned Node.js, so that no image is downloaded.
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { run } from '../harness/processes.ts'
import { say } from '../harness/say.ts'

export const MMDEBSTRAP = '/usr/bin/mmdebstrap'
export const PODMAN = '/usr/bin/podman'

/** The certificates that this machine trusts. They may include that of a proxy between it and the registry. */
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt'

/** Returns the image's name, as in the Dockerfile. Builds the image only if it does not exist yet. */
export function makeBaseImage(folder: string, dockerfile: string): string {
  const [, version] = /^ARG NODE_VERSION=(\S+)/m.exec(readFileSync(dockerfile, 'utf8'))!
  const name = `docker.io/library/node:${version}-slim`
  if (`v${version}` !== process.version)
    throw new Error(`The Dockerfile names Node.js ${version}, this is ${process.version}`)
  if (run(PODMAN, ['images', '--quiet', name]) !== '') return name
  say('Making a base image of Debian packages and the pinned Node.js')
  const archive = join(folder, 'base.tar')
  const hooks = [
    `upload ${process.execPath} /usr/local/bin/node`,
    ...(existsSync(CERTIFICATES) ? [`upload ${CERTIFICATES} ${CERTIFICATES}`] : []),
    // `upload` drops the executable bit.
    'chmod 755 "$1/usr/local/bin/node"',
    'mkdir -p "$1/usr/local/lib/node_modules/npm"',
    `sync-in ${npmFolder()} /usr/local/lib/node_modules/npm`,
    'ln -s ../lib/node_modules/npm/bin/npm-cli.js "$1/usr/local/bin/npm"',
    `mkdir -p "$1/usr/local/etc"; echo cafile=${CERTIFICATES} > "$1/usr/local/etc/npmrc"`,
    'chroot "$1" useradd --uid 1000 --create-home node',
  ]
  // The pinned Node.js needs libatomic1, which a minimal Debian lacks.
  run(MMDEBSTRAP, [
    '--variant=minbase',
    '--include=ca-certificates,libatomic1,libstdc++6',
    ...hooks.map((hook) => `--customize-hook=${hook}`),
    'bookworm',
    archive,
  ])
  run(PODMAN, ['import', archive, name])
  return name
}

function npmFolder(): string {
  const npm = process.env['npm_execpath'] ?? run('which', ['npm']).trim()
  return dirname(dirname(realpathSync(npm)))
}
