// The manifests of deploy/kubernetes, as kubectl builds them.
import { spawnSync } from 'node:child_process'
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { deployed } from './deployed.ts'
import { keptIn, run } from '../programs/processes.ts'

/** Whether there is a kubectl of 1.24 or later; an earlier one may have a kustomize without components. */
export const hasKubectl = /^Kustomize/m.test(spawnSync('kubectl', ['version', '--client'], { encoding: 'utf8' }).stdout)

/** Returns what `kubectl apply -k` would send for this engine, with the extras and an address of a database. */
export function buildManifests(folder: string, engine: 'postgres' | 'sqlite'): string {
  cpSync(fileURLToPath(new URL('../../../deploy/kubernetes', import.meta.url)), folder, { recursive: true })
  writeFileSync(join(folder, 'postgres/secret.env'), 'DATABASE_URL=postgres://db/petstore\n')
  writeFileSync(join(folder, 'postgres/owner-secret.env'), 'DATABASE_URL=postgres://db/petstore\n')
  const withExtras = deployed(`kubernetes/${engine}/kustomization.yaml`).replace('# components:', 'components:')
  writeFileSync(join(folder, engine, 'kustomization.yaml'), withExtras)
  const monitoring = join(folder, 'monitoring/kustomization.yaml')
  writeFileSync(monitoring, readFileSync(monitoring, 'utf8').replace('resources: [', 'resources: [probe.yaml, '))
  return run('kubectl', ['kustomize', join(folder, engine)], { env: keptIn(folder) })
}

/** Returns the file of deploy/kubernetes/monitoring that has the rules of deploy/alerts.yaml. */
export function prometheusRule(): string {
  const groups = readFileSync(fileURLToPath(new URL('../../../deploy/alerts.yaml', import.meta.url)), 'utf8').replace(
    /^(?:#.*\n)+/,
    '',
  )
  return `# Made from deploy/alerts.yaml: npm run drill check-alerts
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: petstore
spec:
${groups.replaceAll(/^(?=.)/gm, '  ')}`
}
