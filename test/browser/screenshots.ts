// npm run screenshots: the pictures of docs/screenshots, made of a running service with sample data.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Browser, Page } from '@playwright/test'
import { readConfig } from '../../src/config.ts'
import { createLog } from '../../src/log.ts'
import { startServer } from '../../src/server.ts'
import { signIn } from './browsing.ts'
import { findChromium, launchChromium } from './chromium.ts'
import { fillStore, SAMPLE_EMAIL, SAMPLE_PASSWORD } from './sample-store.ts'

const FOLDER = fileURLToPath(new URL('../../docs/screenshots/', import.meta.url))
const DESKTOP = { width: 1280, height: 860 }
const PHONE = { width: 360, height: 740 }

/** A Sunday morning, so that the pictures change only with the pages. */
const clock = { now: Date.parse('2026-11-15T09:24:00Z') }

const executable = findChromium()
if (executable === undefined) throw new Error('No Chromium was found; install one, or name it with CHROMIUM.')
const folder = await mkdtemp(join(tmpdir(), 'petstore-screenshots-'))
const config = readConfig(
  { port: '0', database: `sqlite:${join(folder, 'petstore.db')}`, 'staging-base-url': 'http://localhost:8080/v1' },
  {},
)
const running = await startServer(config, createLog('error', process.stderr), { clock: () => clock.now })
const browser = await launchChromium(executable)
try {
  await fillStore(running, clock)
  await takeAll(browser)
} finally {
  await browser.close()
  await running.stop()
  await rm(folder, { recursive: true })
}

async function takeAll(on: Browser): Promise<void> {
  for (const scheme of ['light', 'dark'] as const) {
    const page = await on.newPage({ baseURL: running.url, colorScheme: scheme, viewport: DESKTOP })
    await page.clock.setFixedTime(clock.now)
    await take(page, '/', `welcome-${scheme}`)
    await signIn(page, SAMPLE_EMAIL, SAMPLE_PASSWORD)
    for (const name of ['keys', 'animals', 'activity']) await take(page, `/${name}`, `${name}-${scheme}`)
    await take(page, '/animals/40', `animal-${scheme}`)
    await takeReference(page, `docs-${scheme}`)
    await page.context().close()
  }
  const phone = await on.newPage({ baseURL: running.url, viewport: PHONE })
  await phone.clock.setFixedTime(clock.now)
  await signIn(phone, SAMPLE_EMAIL, SAMPLE_PASSWORD)
  for (const name of ['keys', 'animals', 'activity']) await take(phone, `/${name}`, `${name}-phone`)
  await take(phone, '/animals/40', 'animal-phone')
}

async function takeReference(page: Page, name: string): Promise<void> {
  await page.goto('/docs')
  await page.getByRole('heading', { name: 'List animals' }).waitFor()
  await page.screenshot({ path: join(FOLDER, `${name}.png`) })
}

async function take(page: Page, path: string, name: string): Promise<void> {
  await page.goto(path)
  await page.screenshot({ path: join(FOLDER, `${name}.png`) })
}
