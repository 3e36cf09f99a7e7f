// npm run drill check-alerts: promtool checks deploy/alerts.yaml, and tests each alert on the time series of an outage.
import { fileURLToPath } from 'node:url'
import { run } from '../harness/processes.ts'
import { requirePrograms } from './debian.ts'

const PROMTOOL = '/usr/bin/promtool'
const deployed = (file: string) => fileURLToPath(new URL(`../../deploy/${file}`, import.meta.url))

requirePrograms([PROMTOOL], ['prometheus'])
process.stdout.write(run(PROMTOOL, ['check', 'rules', deployed('alerts.yaml')]))
process.stdout.write(run(PROMTOOL, ['test', 'rules', deployed('alerts.test.yaml')]))
