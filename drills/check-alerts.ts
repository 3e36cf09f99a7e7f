// npm run check:alerts: Prometheus itself checks deploy/alerts.yaml, and tries each alert on series of an outage.
import { fileURLToPath } from 'node:url'
import { requirePrograms } from './debian.ts'
import { run } from './processes.ts'

const PROMTOOL = '/usr/bin/promtool'
const deployed = (file: string) => fileURLToPath(new URL(`../deploy/${file}`, import.meta.url))

requirePrograms([PROMTOOL], ['prometheus'])
process.stdout.write(run(PROMTOOL, ['check', 'rules', deployed('alerts.yaml')]))
process.stdout.write(run(PROMTOOL, ['test', 'rules', deployed('alerts.test.yaml')]))
