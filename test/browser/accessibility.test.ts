// Axe finds nothing to object to on any page, in light and dark, on a phone and on a desktop.
import assert from 'node:assert/strict'
import { before, it } from 'node:test'
import { AxeBuilder } from '@axe-core/playwright'
import type { Page } from '@playwright/test'
import { describeInBrowser, generateKey, signIn } from './browsing.ts'
import { fillStore, SAMPLE_EMAIL, SAMPLE_PASSWORD, type Sample } from './sample-store.ts'

const clock = { now: Date.parse('2026-11-15T09:24:00Z') }

const OPEN_PAGES = ['/', '/sign-in', '/sign-in?signed-out=yes', '/sign-up', '/docs/errors', '/docs/deprecations', '/nothing-here']
const MEMBER_PAGES = ['/', '/keys', '/animals', '/animals?status=sold', '/animals?status=lost', '/animals/new', '/activity', '/account', '/account/delete']

describeInBrowser('every page for everybody', { clock: () => clock.now }, (browsing) => {
  let sample: Sample
  before(async () => {
    sample = await fillStore(browsing.petstore, clock)
  })

  for (const width of [360, 1280]) {
    it(`has no accessibility violation in light and dark, and no sideways scrolling, ${width} pixels wide`, async () => {
      const page = await browsing.open({ viewport: { width, height: 900 } })
      for (const path of OPEN_PAGES) {
        await page.goto(path)
        await check(page, path)
      }
      await page.goto('/docs')
      await page.getByRole('heading', { name: 'List animals' }).first().waitFor()
      await check(page, '/docs')
      await signIn(page, SAMPLE_EMAIL, SAMPLE_PASSWORD)
      await generateKey(page, 'a name without any space in it that goes on and on and onandonandonandonandonandonandon')
      await check(page, 'a new key')
      for (const path of [...MEMBER_PAGES, `/keys/${sample.keys[0]!.id}/revoke`]) {
        await page.goto(path)
        await check(page, path)
      }
      await page.goto('/animals/new')
      await page.getByRole('button', { name: 'Add animal' }).click()
      await page.getByRole('alert').waitFor()
      await check(page, 'a form with problems')
      browsing.assertClean()
    })
  }
})

async function check(page: Page, name: string): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    assert.deepEqual(await violations(page), [], `${name} in ${colorScheme}`)
  }
  const wider = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
  assert.equal(wider, 0, `${name} scrolls sideways`)
}

async function violations(page: Page): Promise<string[]> {
  // Without frames on a page, the quick way sees all of it.
  const found = await new AxeBuilder({ page }).setLegacyMode(true).analyze()
  return found.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`)
}
