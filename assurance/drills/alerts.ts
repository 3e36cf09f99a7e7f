// npm run drill alerts: Prometheus scrapes an instance and evaluates deploy/alerts.yaml. After a quiet minute, in which no alert
// may fire, a second connection holds the write lock of the database: creates fail, and their alert must fire within a minute.
// --plant gives Prometheus rules that look for another status, and then the drill must fail.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout } from 'node:timers/promises'
import { freePort } from '../harness/free-port.ts'
import { createKey, startInstance } from '../harness/instance.ts'
import { start } from '../harness/processes.ts'
import { until } from '../harness/until.ts'
import { conduct, type Terms } from './conduct.ts'
import { requirePrograms } from './debian.ts'

const PROMETHEUS = '/usr/bin/prometheus'
const CALM_MS = 60_000
const FIRES_WITHIN_MS = 60_000
const PAUSE_MS = 200

const rules = readFileSync(new URL('../../deploy/alerts.yaml', import.meta.url), 'utf8')

async function drill({ folder, plant }: Terms<never>): Promise<boolean> {
  const path = join(folder, 'petstore.db')
  const adminPort = await freePort()
  const { url } = await startInstance(`sqlite:${path}`, join(folder, 'instance.log'), {
    env: { PETSTORE_ADMIN_PORT: String(adminPort) },
  })
  const prometheus = await startPrometheus(folder, adminPort, plant)
  const traffic = startTraffic(`${url}/v1/pets`, await createKey(`sqlite:${path}`))
  await setTimeout(CALM_MS)
  const early = await firing(prometheus)
  process.stdout.write(`a minute of calm: ${early.length === 0 ? 'no alert' : early.join(', ')}\n`)

  const other = new DatabaseSync(path)
  other.exec('BEGIN IMMEDIATE')
  const began = performance.now()
  const fires = async () => (await firing(prometheus)).includes('PetstoreRequestsFail createPet')
  const fired = await until(fires, 'the alert fires', FIRES_WITHIN_MS).then(
    () => true,
    () => false,
  )
  const after = Math.round((performance.now() - began) / 1000)
  process.stdout.write(
    fired ? `creates fail: the alert fired after ${after} s\n` : `creates fail: no alert within ${after} s\n`,
  )
  other.exec('ROLLBACK')
  other.close()
  await traffic.stop()
  return fired && early.length === 0
}

async function startPrometheus(folder: string, target: number, planted: boolean): Promise<string> {
  writeFileSync(join(folder, 'alerts.yaml'), planted ? rules.replaceAll('status=~"5.."', 'status="599"') : rules)
  const file = join(folder, 'prometheus.yaml')
  writeFileSync(
    file,
    `
global: { scrape_interval: 15s, evaluation_interval: 15s }
rule_files: [alerts.yaml]
scrape_configs: [{ job_name: petstore, static_configs: [{ targets: ["127.0.0.1:${target}"] }] }]
`,
  )
  const url = `http://127.0.0.1:${await freePort()}`
  const settings = [
    `--config.file=${file}`,
    `--storage.tsdb.path=${join(folder, 'series')}`,
    `--web.listen-address=${new URL(url).host}`,
  ]
  start(PROMETHEUS, settings, { log: join(folder, 'prometheus.log') })
  await until(async () => (await fetch(`${url}/-/ready`)).ok, 'Prometheus is ready')
  return url
}

/** Returns the names of the alerts that fire, each with its operation. */
async function firing(prometheus: string): Promise<string[]> {
  const { data } = (await (await fetch(`${prometheus}/api/v1/alerts`)).json()) as {
    data: { alerts: { state: string; labels: Record<string, string> }[] }
  }
  return data.alerts
    .filter(({ state }) => state === 'firing')
    .map(({ labels }) => `${labels['alertname']} ${labels['operation'] ?? ''}`.trim())
}

/** Adds and lists animals a few times a second until `stop` is called; ignores the answers. */
function startTraffic(url: string, key: string): { stop(): Promise<void> } {
  const stopped = new AbortController()
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
  const work = async (init: RequestInit) => {
    while (!stopped.signal.aborted) {
      await (await fetch(url, { ...init, headers })).text()
      await setTimeout(PAUSE_MS)
    }
  }
  const done = Promise.all([work({}), work({ method: 'POST', body: JSON.stringify({ name: 'Rex', categoryId: 1 }) })])
  return {
    async stop() {
      stopped.abort()
      await done
    },
  }
}

requirePrograms([PROMETHEUS], ['prometheus'])
await conduct({}, drill)
