// Builds a replacement for Debian's official image from its packages, so that no image is downloaded.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { run } from '../../test/harness/programs/processes.ts'
import { say } from '../../test/harness/say.ts'

export const MMDEBSTRAP = '/usr/bin/mmdebstrap'
export const PODMAN = '/usr/bin/podman'

const NAME = 'docker.io/library/debian:bookworm-slim'

/** How this machine reaches Debian's packages; there may be a proxy between. */
const APT_SETTINGS = ['/etc/apt/sources.list.d', '/etc/apt/apt.conf.d', '/etc/ssl/certs']

/** Builds the image that the Dockerfile begins with, only if it does not exist yet. */
export function makeBaseImage(folder: string): void {
  if (run(PODMAN, ['images', '--quiet', NAME]) !== '') return
  say('Making a base image of Debian packages')
  const archive = join(folder, 'base.tar')
  const hooks = APT_SETTINGS.filter(existsSync).map((path) => `mkdir -p "$1${path}"; cp -aT ${path} "$1${path}"`)
  const words = hooks.map((hook) => `--customize-hook=${hook}`)
  run(MMDEBSTRAP, ['--variant=minbase', '--include=ca-certificates', ...words, 'bookworm', archive])
  run(PODMAN, ['import', archive, NAME])
}
