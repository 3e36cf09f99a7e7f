// Starts nginx, HAProxy or Caddy in front of the instances, with the configurations of deploy/; only addresses and TLS are
// replaced.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { deployedFor } from './deployed.ts'
import { freePort } from '../connections/free-port.ts'
import { keptIn, start } from '../programs/processes.ts'
import { until } from '../until.ts'
import { CADDY, startCaddy } from './caddy.ts'

const NGINX = '/usr/sbin/nginx'
export const HAPROXY = '/usr/sbin/haproxy'

export const PROGRAMS = { nginx: NGINX, HAProxy: HAPROXY, Caddy: CADDY }
export const PACKAGES = ['nginx-light', 'haproxy', 'caddy']

/** Starts a proxy in front of one instance or two, and returns its address. */
export type StartProxy = (folder: string, ports: readonly number[]) => Promise<string>

export const PROXIES: Record<keyof typeof PROGRAMS, StartProxy> = {
  nginx: startNginx,
  HAProxy: startHaproxy,
  Caddy: startCaddy,
}

async function startNginx(folder: string, ports: readonly number[]): Promise<string> {
  const port = await freePort()
  const site = deployedFor('nginx.conf', ports)
    .replace('listen 443 ssl;', `listen 127.0.0.1:${port};`)
    .replaceAll(/^ *ssl_certificate.*\n/gm, '')
    .replaceAll('/var/log/nginx', 'logs')
  start(NGINX, nginxOptions(folder, site), { env: keptIn(folder), log: join(folder, 'nginx.log') })
  return ready(`http://127.0.0.1:${port}`)
}

/** Writes the site's whole configuration, and returns the options of an nginx that writes to this folder only. */
export function nginxOptions(folder: string, site: string): string[] {
  // Relative to the folder.
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${name};`)
  mkdirSync(join(folder, 'logs'))
  const file = join(folder, 'nginx.conf')
  // Only the drill's user can read its folder. If that is root, nginx would run its workers as another user.
  writeFileSync(
    file,
    `user root; daemon off; pid nginx.pid; events {}\nhttp { access_log logs/access.log; ${temporary.join(' ')}\n${site}}\n`,
  )
  return ['-p', folder, '-c', file, '-e', join(folder, 'logs/error.log')]
}

async function startHaproxy(folder: string, ports: readonly number[]): Promise<string> {
  const port = await freePort()
  const file = join(folder, 'haproxy.cfg')
  const text = deployedFor('haproxy.cfg', ports).replace(/bind :443 .*/, `bind 127.0.0.1:${port}`)
  writeFileSync(file, text.replace('# log-format', 'log stdout format raw daemon\n  log-format'))
  start(HAPROXY, ['-db', '-f', file], { env: keptIn(folder), log: join(folder, 'haproxy.log') })
  return ready(`http://127.0.0.1:${port}`)
}

async function ready(url: string): Promise<string> {
  await until(async () => (await fetch(`${url}/readyz`)).ok, 'the proxy finds the instances ready')
  return url
}
