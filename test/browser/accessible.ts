// What every page is checked for, and the sample that it is checked with: axe finds nothing to object to, in light and dark, on a phone
// and on a desktop, and nothing scrolls sideways.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { before } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Page } from '@playwright/test'
import type { AxeResults } from 'axe-core'
import { type Browsing, describeInBrowser } from './browsing.ts'
import { fillStore, SAMPLE_EMAIL, SAMPLE_PASSWORD, type Sample } from './sample-store.ts'

const AXE = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8')
const clock = { now: Date.parse('2026-11-15T09:24:00Z') }

export const PROMISE =
  'has no accessibility violation in light and dark, on a phone and on a desktop, no sideways scrolling, whatever the font, and on a phone its navigation on one line'

/** Addresses that name something, which accessible-steps.test.ts opens. */
export const OF_A_KEY = [
  '/keys/{id}/rename',
  '/keys/{id}/first-request',
  '/keys/{id}/revoke',
  '/people/keys/{id}/revoke',
]
export const OF_A_PERSON = ['/people/{id}/remove', '/people/{id}']
export const OF_A_BATCH = '/animals/batches/{id}'
export const OF_A_FILE = ['', '/columns', '/left-out.csv'].map((step) => `/animals/import/{file}${step}`)

type Tests = (browsing: Browsing, sample: () => Sample, openMember: () => Promise<Page>) => void

/** Like `describeInBrowser`, on a store in use. A member is the account of the sample, who is a manager, too. */
export function describeWithSample(name: string, tests: Tests): void {
  describeInBrowser(name, { clock: () => clock.now }, (browsing) => {
    let sample: Sample
    before(async () => {
      sample = await fillStore(browsing.petstore, clock)
      await browsing.petstore.accounts.setRole(sample.account, 'manager', 'command line')
    })
    tests(
      browsing,
      () => sample,
      () => browsing.openSignedIn({}, SAMPLE_EMAIL, SAMPLE_PASSWORD),
    )
  })
}

/** Widths of letters differ between machines: these are narrower and wider than any usual font, and the last resort. */
const FONTS = {
  narrow: '* { letter-spacing: -0.06em !important }',
  wide: '* { font-family: monospace !important; letter-spacing: 0.04em !important }',
  fallback: '* { font-family: serif !important }',
}

/**
 * Every rule in one scheme, and those about colours and sizes in the other one, at another width: a scheme differs in colours only
 * (accessibility.test.ts). Which width has which scheme alternates between pages, so that what many of them show is looked at in all four.
 */
export async function check(page: Page, name: string): Promise<void> {
  await page.evaluate(AXE)
  const [light, dark] = name.length % 2 === 0 ? [360, 1280] : [1280, 360]
  for (const [colorScheme, width, rules] of [
    ['light', light, undefined],
    ['dark', dark, ['color-contrast', 'target-size']],
  ] as const) {
    await page.setViewportSize({ width, height: 900 })
    await page.emulateMedia({ colorScheme })
    assert.deepEqual(await violations(page, rules), [], `${name} in ${colorScheme}, ${width} pixels wide`)
  }
  for (const width of [320, 360, 660, 820, 1280]) {
    await page.setViewportSize({ width, height: 900 })
    assert.equal(await excessWidth(page), 0, `${name} scrolls sideways, ${width} pixels wide`)
    if (width !== 360) continue
    assert.equal(await navigationLines(page), 1, `${name} has its navigation on one line`)
    assert.deepEqual(await fontsThatWiden(page), [], `${name} scrolls sideways on a phone with these fonts`)
  }
}

function fontsThatWiden(page: Page): Promise<unknown> {
  return page.evaluate(`Object.entries(${JSON.stringify(FONTS)}).flatMap(([font, style]) => {
    const sheet = new CSSStyleSheet()
    sheet.replaceSync(style)
    document.adoptedStyleSheets.push(sheet)
    const { scrollWidth, clientWidth } = document.documentElement
    document.adoptedStyleSheets.pop()
    return scrollWidth > clientWidth ? [font] : []
  })`)
}

function navigationLines(page: Page): Promise<unknown> {
  const tops = `Array.from(document.querySelectorAll('[aria-label="Main"] li'), (item) => item.getBoundingClientRect().top)`
  return page.evaluate(`new Set(${tops}).size`)
}

function excessWidth(page: Page): Promise<unknown> {
  return page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
}

async function violations(page: Page, runOnly?: readonly string[]): Promise<string[]> {
  // What passes is not described, which takes axe as long as the rules. The list repeats its statuses after eight animals.
  const run = `axe.run({ exclude: ['.animals tbody tr:nth-child(n + 9)'] }, ${JSON.stringify({ resultTypes: ['violations'], preload: false, runOnly })})`
  const { violations: found } = (await page.evaluate(run)) as AxeResults
  return found.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`)
}
