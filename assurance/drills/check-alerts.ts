// npm run drill check-alerts: promtool checks deploy/alerts.yaml, and tests each alert on the time series of an outage and of a quiet
// night. Then the rules of Kubernetes are made from them.
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { prometheusRule } from '../../test/harness/deployment/manifests.ts'
import { run } from '../../test/harness/programs/processes.ts'
import { requirePrograms } from './debian.ts'

const PROMTOOL = '/usr/bin/promtool'
const deployed = (file: string) => fileURLToPath(new URL(`../../deploy/${file}`, import.meta.url))

requirePrograms([PROMTOOL], ['prometheus'])
process.stdout.write(run(PROMTOOL, ['check', 'rules', deployed('alerts.yaml')]))
process.stdout.write(run(PROMTOOL, ['test', 'rules', deployed('alerts.test.yaml')]))
writeFileSync(deployed('kubernetes/monitoring/prometheus-rule.yaml'), prometheusRule())
