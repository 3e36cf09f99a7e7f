// Axe finds nothing to object to on any page, in light and dark, on a phone and on a desktop.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { before, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Page } from '@playwright/test'
import type { AxeResults, RunOptions } from 'axe-core'
import { linkAddress } from '../../src/console/link.ts'
import { MEMBER_PAGES } from '../console-client.ts'
import { makeAccount } from '../harness.ts'
import { event } from '../sample-rows.ts'
import { describeInBrowser, generateKey, signIn } from './browsing.ts'
import { fillStore, SAMPLE_EMAIL, SAMPLE_PASSWORD, type Sample } from './sample-store.ts'

const AXE = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8')
const CONSOLE_CSS = readFileSync(new URL('../../src/console/assets/console.css', import.meta.url), 'utf8')
const clock = { now: Date.parse('2026-11-15T09:24:00Z') }

const OPEN_PAGES = [
  '/',
  '/sign-in',
  '/sign-in?signed-out=yes',
  '/sign-up',
  '/docs/errors',
  '/docs/deprecations',
  '/nothing-here',
]
const SEEN_BY_MEMBERS = [
  ...MEMBER_PAGES,
  '/',
  '/animals?status=sold',
  '/animals?status=lost',
  '/animals?q=a',
  '/animals?q=99999',
  '/animals?step=1240&was=sold&since=1',
  '/animals/40',
  '/animals/changes?person=nobody',
  '/animals?category=4',
  '/categories?saved=1',
  '/categories/new',
  '/categories/1',
  '/activity',
  '/account',
  '/account/delete',
  '/people',
  '/animals/40/remove',
]

describeInBrowser('every page for everybody', { clock: () => clock.now }, (browsing) => {
  let sample: Sample
  before(async () => {
    sample = await fillStore(browsing.petstore, clock)
    await browsing.petstore.accounts.setRole(sample.account, 'manager', 'command line')
  })

  /** Widths of letters differ between machines: these are narrower and wider than any usual font, and the last resort. */
  const FONTS = {
    narrow: '* { letter-spacing: -0.06em !important }',
    wide: '* { font-family: monospace !important; letter-spacing: 0.04em !important }',
    fallback: '* { font-family: serif !important }',
  }

  it('has no sideways scrolling on a phone, whatever the font', async () => {
    const page = await browsing.open({ viewport: { width: 360, height: 900 }, bypassCSP: true })
    const assertFits = async (path: string) => {
      await page.goto(path)
      if (path === '/docs') await page.getByRole('heading', { name: 'List animals' }).first().waitFor()
      for (const [font, style] of Object.entries(FONTS)) {
        const added = await page.addStyleTag({ content: style })
        assert.equal(await excessWidth(page), 0, `${path} scrolls sideways with a ${font} font`)
        await added.evaluate('(element) => element.remove()')
      }
    }
    for (const path of [...OPEN_PAGES, '/docs']) await assertFits(path)
    await signIn(page, SAMPLE_EMAIL, SAMPLE_PASSWORD)
    for (const path of SEEN_BY_MEMBERS) await assertFits(path)
  })

  it('differs in dark by its colours only', () => {
    // light-dark() takes nothing but colours.
    assert.match(CONSOLE_CSS, /: light-dark\(/)
    assert.doesNotMatch(CONSOLE_CSS, /prefers-color-scheme/)
  })

  const PROMISE =
    'has no accessibility violation in light and dark, on a phone and on a desktop, no sideways scrolling, and on a phone its navigation on one line'

  const openMember = () => browsing.openSignedIn({}, SAMPLE_EMAIL, SAMPLE_PASSWORD)
  // A test for each page, since axe takes seconds for one.
  for (const [whom, open, pages] of [
    ['visitors', () => browsing.open(), OPEN_PAGES],
    ['who is signed in', openMember, SEEN_BY_MEMBERS],
  ] as const)
    for (const path of pages)
      it(`for ${whom} ${PROMISE}: ${path}`, async () => {
        const page = await open()
        await page.goto(path)
        await check(page, path)
        browsing.assertClean()
      })

  it(`for visitors ${PROMISE}: /docs`, async () => {
    const page = await browsing.open()
    await page.goto('/docs')
    await page.getByRole('heading', { name: 'List animals' }).first().waitFor()
    await check(page, '/docs', {})
    browsing.assertClean()
  })

  it(`for who is signed in ${PROMISE}: keys that are made and revoked, a form with problems`, async () => {
    const page = await openMember()
    await generateKey(page, 'a name without any space in it that goes on and on and onandonandonandonandonandonandon')
    await check(page, 'a new key')
    await page.goto(`/keys/${sample.keys[0]!.id}/revoke`)
    await check(page, 'a key to revoke')
    await page.goto('/animals/new')
    await page.getByRole('button', { name: 'Add animal' }).click()
    await page.getByRole('alert').waitFor()
    await check(page, 'a form with problems')
    browsing.assertClean()
  })

  it(`for managers ${PROMISE}: a person, and links for them`, async () => {
    const person = await makeAccount(browsing.petstore, `${'long-'.repeat(20)}@example.com`)
    const page = await openMember()
    for (const end of ['/remove', '']) {
      await page.goto(`/people/${person.id}${end}`)
      await check(page, `a person${end}`)
    }
    await page.getByRole('button', { name: 'Make a link' }).click()
    await page.getByRole('heading', { name: 'A link for' }).waitFor()
    await check(page, 'a new link')
    browsing.assertClean()
  })

  for (const [kind, button, isFor] of [
    ['an invitation', 'Create account', () => undefined],
    ['a new password', 'Set password', () => sample.account],
  ] as const)
    it(`for visitors ${PROMISE}: the link for ${kind}, which works although its page sends no referrer`, async () => {
      const page = await browsing.open()
      await page.goto(linkAddress((await browsing.petstore.accounts.makeLink(sample.account, isFor()))!))
      await check(page, kind)
      if (isFor() === undefined) await page.getByLabel('Email address').fill('invited@example.com')
      await page.getByLabel('assword').fill(SAMPLE_PASSWORD)
      await page.getByRole('button', { name: button }).click()
      await page.waitForURL('/animals')
      browsing.assertClean()
    })

  it(`for who is signed in ${PROMISE}: questions about what two people changed`, async () => {
    const { pets } = browsing.petstore.store
    const page = await openMember()
    const { id, ...pet } = (await pets.get(40n))!
    const rename = (from: string, to: string) =>
      pets.update(id, { ...pet, name: from }, { ...pet, name: to }, event('acct_2', 'pet.changed'))
    await rename(pet.name, 'w'.repeat(255))
    await page.goto('/animals/40')
    await page.getByText('Edit', { exact: true }).click()
    await check(page, 'an animal that is edited')
    await rename('w'.repeat(255), 'x'.repeat(255))
    await page.getByLabel('Name').fill('Mine')
    for (const name of ['a question', 'a question without an answer']) {
      await page.getByRole('button', { name: 'Save' }).click()
      await page.getByRole('radio', { name: 'Keep yours' }).waitFor()
      await check(page, name)
    }
    browsing.assertClean()
  })
})

/** The rules that a change of colours alone can break: of axe's category of colours, those that are on by default. */
const COLOR_RULES: RunOptions = { runOnly: { type: 'rule', values: ['color-contrast', 'link-in-text-block'] } }

/** In dark the console's own pages differ in colours only (asserted above); `inDark` has what else to look at there. */
async function check(page: Page, name: string, inDark = COLOR_RULES): Promise<void> {
  await page.evaluate(AXE)
  for (const width of [360, 1280]) {
    await page.setViewportSize({ width, height: 900 })
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      const found = await violations(page, colorScheme === 'dark' ? inDark : {})
      assert.deepEqual(found, [], `${name} in ${colorScheme}, ${width} pixels wide`)
    }
  }
  for (const width of [320, 360, 660, 820, 1280]) {
    await page.setViewportSize({ width, height: 900 })
    assert.equal(await excessWidth(page), 0, `${name} scrolls sideways, ${width} pixels wide`)
    if (width === 360) assert.equal(await navigationLines(page), 1, `${name} has its navigation on one line`)
  }
}

function navigationLines(page: Page): Promise<unknown> {
  const tops = `Array.from(document.querySelectorAll('[aria-label="Main"] li'), (item) => item.getBoundingClientRect().top)`
  return page.evaluate(`new Set(${tops}).size`)
}

function excessWidth(page: Page): Promise<unknown> {
  return page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
}

async function violations(page: Page, rules: RunOptions): Promise<string[]> {
  // What passes is not described, which takes axe as long as the rules.
  const options: RunOptions = { ...rules, resultTypes: ['violations'] }
  const { violations: found } = (await page.evaluate(`axe.run(${JSON.stringify(options)})`)) as AxeResults
  return found.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`)
}
