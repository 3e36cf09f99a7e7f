// Starts HAProxy in front of the instances. It checks their readiness and sends requests to those that are ready.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../test/harness/connections/free-port.ts'
import { start } from '../../test/harness/programs/processes.ts'
import { HAPROXY } from '../../test/harness/deployment/proxy-servers.ts'
import { until } from '../../test/harness/until.ts'

/** HAProxy's answer when no instance is ready: an Error body like those of the service. */
const NOT_READY = JSON.stringify({
  code: 'service_unavailable',
  message: 'The service is not ready; try again shortly.',
  status: 503,
})

/** HAProxy's health checks. */
export const CHECKS = {
  /** For instances that are killed: one failure marks an instance as down. */
  eager: 'check inter 250ms fall 1 rise 1 observe layer4 error-limit 1 on-error mark-down',
  /** For instances that drain for 5 seconds: notices it within 3, and tolerates one slow answer. */
  patient: 'check inter 1s fall 2 rise 1',
}

/** Starts HAProxy and returns its address. */
export async function startLoadBalancer(
  folder: string,
  ports: readonly number[],
  checks = CHECKS.eager,
): Promise<string> {
  const port = await freePort()
  const file = join(folder, 'haproxy.cfg')
  writeFileSync(file, configuration(port, ports, checks))
  start(HAPROXY, ['-db', '-f', file], { log: join(folder, 'haproxy.log') })
  const url = `http://127.0.0.1:${port}`
  await until(async () => (await fetch(`${url}/readyz`)).ok, 'HAProxy finds the instances ready')
  return url
}

function configuration(port: number, instances: readonly number[], checks: string): string {
  const servers = instances.map((instance, index) => `  server instance-${index + 1} 127.0.0.1:${instance}`)
  return `
defaults
  mode http
  timeout connect 1s
  timeout client 30s
  timeout server 30s
  # A connection that is refused goes to the other instance; a request that was sent is not sent again.
  retries 3
  option redispatch 1
  http-error status 503 content-type application/json string '${NOT_READY}' hdr Retry-After 1

frontend pets
  bind 127.0.0.1:${port}
  default_backend instances

backend instances
  balance roundrobin
  option httpchk GET /readyz
  default-server ${checks}
${servers.join('\n')}
`
}
