// Animals that are added as fast as one can type, over a slow, broken or ended connection: none is lost, none is doubled.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import type { Page, Route } from '@playwright/test'
import { makeAccount, PASSWORD } from '../harness/harness.ts'
import { event } from '../harness/databases/sample-rows.ts'
import { until } from '../harness/until.ts'
import { describeInBrowser } from './browsing.ts'

const LATENCY_MS = 400
const NAMES =
  'Alfredo Bettina Carolin Dagobert Emilia Ferdinand Gustavo Henriette Ida Jolanda Konrad Ludmilla Mo Nepomuk Ö'

describeInBrowser('adding animals in a browser', {}, (browsing) => {
  const stored = async () => (await browsing.petstore.store.pets.list({ limit: 100 })).toReversed()
  const namesSince = async (count: number) => (await stored()).slice(count).map(({ name }) => name)
  const open = async (options = {}) => {
    const page = await browsing.openSignedIn(options)
    await page.goto('/animals/new')
    await page.locator('[name=name]:focus').waitFor()
    return { page, before: (await stored()).length }
  }
  /** Answers the sent lines after the latency, or as `answer` does. */
  const slowly = (page: Page, answer = (route: Route) => route.continue()) =>
    page.route('**/animals/new*', async (route) => {
      if (route.request().method() === 'POST') await wait(LATENCY_MS)
      await (route.request().method() === 'POST' ? answer(route) : route.continue())
    })
  const type = async (page: Page, names: string) => {
    await page.getByLabel('Name').focus()
    for (const name of names.split(' ')) {
      await page.keyboard.type(name)
      await page.keyboard.press('Enter')
    }
  }
  const line = (page: Page, name: string) => page.locator('.added li', { hasText: name })
  const isAdded = (page: Page, name: string) => line(page, name).getByRole('button', { name: 'Undo' }).waitFor()
  const fill = (page: Page, label: string, text: string) => page.getByLabel(label, { exact: true }).fill(text)
  const signIn = async (page: Page, email: string) => {
    await page.getByLabel('Email address').fill(email)
    await page.getByLabel('Password').fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in' }).click()
    // No name was ever given.
    await page.getByRole('link', { name: 'Later' }).click()
  }

  it('adds 15 typed as fast as one can, each with what the form had at that moment, in order and without a load', async () => {
    const { page, before } = await open()
    await slowly(page)
    let loads = 0
    page.on('load', () => (loads += 1))
    await fill(page, 'Category', '7')
    await type(page, NAMES)
    await page.getByLabel('Status').selectOption('pending')
    await type(page, 'Zora')
    await line(page, 'Zora').getByText('7 · waiting').waitFor()
    await fill(page, 'Category', '8')
    await page.getByLabel('Name').pressSequentially('Last')
    await page.getByRole('button', { name: 'Add animal' }).click()
    await page.waitForURL('**/animals?added=*')
    await page.getByText('Last added').waitFor()
    assert.equal(loads, 1)
    const expected = [...NAMES.split(' ').map((name) => `${name} 7 available`), 'Zora 7 pending', 'Last 8 pending']
    const added = (await stored()).slice(before)
    assert.deepEqual(
      added.map(({ name, categoryId, status }) => `${name} ${categoryId} ${status}`),
      expected,
    )
    browsing.assertClean()
  })

  it('stays while somebody types on; Done waits for what is being sent', async () => {
    const { page, before } = await open()
    await slowly(page)
    await fill(page, 'Category', '7')
    await fill(page, 'Name', 'Rex')
    await page.getByRole('button', { name: 'Add animal' }).click()
    await page.keyboard.type('Nino')
    await isAdded(page, 'Rex')
    assert.equal(await page.getByLabel('Name').inputValue(), 'Nino')
    await page.keyboard.press('Enter')
    await page.getByRole('link', { name: 'Done' }).click()
    await page.waitForURL('/animals')
    assert.deepEqual(await namesSince(before), ['Rex', 'Nino'])
    browsing.assertClean()
  })

  it('keeps what gets no answer, or another than that of the store, and adds it once when that is tried again', async () => {
    const { page, before } = await open()
    // The browser reports these answers, which are no fault of the page.
    page.removeAllListeners('console')
    await fill(page, 'Category', '7')
    const answers: [words: string, answer: (route: Route) => Promise<void>][] = [
      ['No connection.', (route) => route.abort('failed')],
      // Added, but the answer is lost.
      [
        'No connection.',
        async (route) => {
          await route.fetch()
          await route.abort('connectionreset')
        },
      ],
      [
        'Bad gateway',
        (route) => route.fulfill({ status: 502, contentType: 'text/html', body: '<h1>Bad gateway</h1>' }),
      ],
      ['The answer was 503', (route) => route.fulfill({ status: 503, body: 'away' })],
    ]
    for (const [nth, [words, answer]] of answers.entries()) {
      await slowly(page, answer)
      const name = `Broken ${nth}`
      await fill(page, 'Name', name)
      await page.keyboard.press('Enter')
      await fill(page, 'Name', `Next ${nth}`)
      await page.keyboard.press('Enter')
      await line(page, name).getByText(words).waitFor()
      assert.equal(await line(page, name).getByRole('button', { name: 'Edit' }).count(), 0, 'it may be added')
      await page.unrouteAll({ behavior: 'wait' })
      await line(page, name).getByRole('button', { name: 'Try again' }).click()
      await isAdded(page, `Next ${nth}`)
    }
    const expected = answers.flatMap((_, nth) => [`Broken ${nth}`, `Next ${nth}`])
    assert.deepEqual(await namesSince(before), expected)
  })

  it('keeps all lines over a sign-in, for who typed them alone, and asks before they are left', async () => {
    const { page, before } = await open()
    const { email } = browsing.petstore.account
    const other = await makeAccount(browsing.petstore, 'other@till.example')
    await slowly(page)
    await fill(page, 'Category', '7')
    await type(page, 'Early')
    await isAdded(page, 'Early')
    await browsing.petstore.store.accounts.purgeSessions(0, 0, 0)
    await type(page, 'Late Later Latest')
    const notice = page.locator('.notice', { hasText: 'Your session has ended.' })
    await notice.waitFor()
    let asked = 0
    page.on('dialog', (dialog) => void ((asked += 1), dialog.dismiss()))
    await page.getByRole('link', { name: 'Done' }).click()
    await until(() => Promise.resolve(asked === 1), 'the page asks')
    await notice.getByRole('link', { name: 'Sign in' }).click()
    await signIn(page, other.email)
    await page.waitForURL('**/animals/new')
    assert.equal(await page.getByText('Later').count(), 0)
    await page.locator('summary', { hasText: 'Signed in as' }).click()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.goto('/animals/new')
    await signIn(page, email)
    await page.getByText('You typed some of these animals before.').waitFor()
    assert.deepEqual(await namesSince(before), ['Early'], 'nothing is added by itself')
    await page.getByRole('button', { name: 'Add them' }).click()
    await isAdded(page, 'Latest')
    assert.deepEqual(await namesSince(before), ['Early', 'Late', 'Later', 'Latest'])
    assert.equal(asked, 1)
    browsing.assertClean()
  })

  it('offers what was meant by an unknown category, or to create it, for all of its lines; others go on', async () => {
    const { store, account } = browsing.petstore
    await store.categories.save({ number: 40n, name: 'Dogs' }, undefined, event(account.id, 'category.added'))
    const { page, before } = await open()
    await slowly(page)
    await fill(page, 'Category', 'Dogz')
    await type(page, 'Ada Bob')
    await fill(page, 'Category', '7')
    await type(page, 'Cleo')
    await isAdded(page, 'Cleo')
    await line(page, 'Ada').getByText('No category is named "Dogz". Did you mean Dogs?').waitFor()
    await line(page, 'Ada').getByRole('button', { name: 'Use Dogs' }).click()
    await isAdded(page, 'Bob')
    await fill(page, 'Category', 'Otters')
    await type(page, 'Dora Eli')
    await line(page, 'Eli').getByRole('button', { name: 'Create the category “Otters”' }).click()
    await isAdded(page, 'Dora')
    await isAdded(page, 'Eli')
    const { names } = await store.categories.names()
    const otters = [...names].find(([, name]) => name === 'Otters')?.[0]
    await fill(page, 'Category', '1.5')
    await type(page, 'Fay')
    await page.keyboard.type('Gus')
    const edit = line(page, 'Fay').getByRole('button', { name: 'Edit' })
    await edit.click()
    assert.equal(await page.getByLabel('Name').inputValue(), 'Gus', 'what is being typed stays')
    await fill(page, 'Name', '')
    await edit.click()
    const form = [await page.getByLabel('Name').inputValue(), await page.getByLabel('Category').inputValue()]
    assert.deepEqual(form, ['Fay', '1.5'])
    await fill(page, 'Category', 'dogs')
    await page.keyboard.press('Enter')
    await isAdded(page, 'Fay')
    const added = (await stored()).slice(before).map(({ name, categoryId }) => [name, categoryId])
    assert.deepEqual(
      new Map(added as [string, bigint][]),
      new Map([
        ['Cleo', 7n],
        ['Ada', 40n],
        ['Bob', 40n],
        ['Dora', otters],
        ['Eli', otters],
        ['Fay', 40n],
      ]),
    )
    assert.equal(added.length, 6)
    browsing.assertClean()
  })
})
