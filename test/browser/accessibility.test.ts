// Every page that has an address of its own is accessible, in light and dark, on a phone and on a desktop. What forms lead to is in
// accessible-steps.test.ts.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { it } from 'node:test'
import { ROUTES } from '../../src/console/console.ts'
import { MEMBER_PAGES, OPEN_PAGES } from '../harness/connections/console-client.ts'
import { check, describeWithSample, OF_A_BATCH, OF_A_FILE, OF_A_KEY, OF_A_PERSON, PROMISE } from './accessible.ts'

const CONSOLE_CSS = readFileSync(new URL('../../src/console/assets/console.css', import.meta.url), 'utf8')

/** The reference is a program of its own: it is checked by itself. */
const SEEN_BY_ANYONE = [...OPEN_PAGES.filter((path) => path !== '/docs'), '/sign-in?signed-out=yes', '/nothing-here']
const SEEN_BY_MEMBERS = [
  ...MEMBER_PAGES,
  '/',
  '/animals?q=a&status=sold&category=4',
  '/animals?status=lost',
  '/animals?q=99999',
  '/animals?step=1240&was=sold&since=1',
  '/animals/40',
  '/animals/changes?person=nobody',
  '/categories?saved=1',
  '/categories/1',
  '/animals/40/status',
  '/animals/40/remove',
]

it('Every page is looked at, also those whose address names something', () => {
  const seen = [...SEEN_BY_ANYONE, ...SEEN_BY_MEMBERS, ...OF_A_KEY, ...OF_A_PERSON, ...OF_A_FILE, OF_A_BATCH]
  const isSeen = (path: string) =>
    seen.includes(path) || seen.some((page) => new RegExp(`^${path.replaceAll(/\{\w+\}/g, '\\w+')}$`).test(page))
  const missed = ROUTES.filter(({ method, path }) => method === 'GET' && path.includes('{') && !isSeen(path))
  assert.deepEqual(
    missed.map(({ path }) => path),
    [],
  )
})

it('A page differs in dark by its colours only', () => {
  // light-dark() takes nothing but colours.
  assert.match(CONSOLE_CSS, /: light-dark\(/)
  assert.doesNotMatch(CONSOLE_CSS, /prefers-color-scheme/)
})

describeWithSample('every page for everybody', (browsing, _sample, openMember) => {
  // A test for each page, since axe takes seconds for one.
  for (const [whom, open, pages] of [
    ['visitors', () => browsing.open(), SEEN_BY_ANYONE],
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
    await check(page, '/docs')
    browsing.assertClean()
  })
})
