// The console as people use it, in a real browser.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { it } from 'node:test'
import type { Page, Route } from '@playwright/test'
import { until } from '../harness/until.ts'
import type { NewPet } from '../../src/contract/pets.ts'
import { withKey } from '../harness/connections/console-client.ts'
import { PASSWORD } from '../harness/harness.ts'
import { event } from '../harness/databases/sample-rows.ts'
import { describeInBrowser, generateKey } from './browsing.ts'

describeInBrowser('the console in a browser', {}, (browsing) => {
  const list = (key: string) => browsing.petstore.call('/pets', withKey(key))
  const rex: NewPet = { name: 'Rex\nthe "First"', categoryId: 3n, status: 'available' }
  const addRex = async () => {
    const created = await browsing.petstore.store.pets.create(rex)
    assert.ok('pet' in created)
    return created.pet.id
  }
  /** As a colleague changes the animal meanwhile. */
  const changeRex = (id: bigint, to: Partial<NewPet>) =>
    browsing.petstore.store.pets.update(id, rex, { ...rex, ...to }, event('acct_2', 'pet.changed'))

  it('leads from nothing to an account, a key, its use, its last use and its end', async () => {
    const page = await browsing.open({ permissions: ['clipboard-read', 'clipboard-write'] })
    await page.goto('/')
    await page.getByRole('link', { name: 'Get a key' }).click()
    await page.getByRole('main').getByRole('link', { name: 'Create one' }).click()
    await page.getByLabel('Your name').fill('First')
    await page.getByLabel('Email address').fill('first@example.com')
    await page.getByLabel('Password').fill(PASSWORD)
    await page.getByRole('button', { name: 'Create account' }).click()
    await page.waitForURL('/keys')
    const key = await generateKey(page, 'laptop')

    await page.getByRole('button', { name: 'Copy the key' }).click()
    assert.equal(await page.evaluate('navigator.clipboard.readText()'), key)
    await page.getByRole('button', { name: 'Copy the line' }).last().click()
    const line = String(await page.evaluate('navigator.clipboard.readText()'))
    assert.ok(line.includes(`Bearer ${key}`) && line.includes(`${browsing.petstore.url}/v1/pets`), line)

    assert.equal((await list(key)).status, 200)
    await page.getByRole('link', { name: 'I’ve saved this key' }).click()
    const card = page.getByRole('row', { name: 'laptop' })
    assert.match((await card.innerText()).replaceAll(/\s+/g, ' '), /just now.*just now.* Never 1 /)
    await card.getByRole('link', { name: 'Revoke laptop' }).click()
    await page.getByRole('button', { name: 'Revoke key' }).click()
    await page.getByText('The key is revoked').waitFor()
    assert.equal((await list(key)).status, 401)
    browsing.assertClean()
  })

  it('shows beside a new key that its first request has come, also where a look at the service failed before', async () => {
    const page = await browsing.openSignedIn()
    await page.addInitScript(`
      const { fetch } = window
      let isFirst = true
      window.fetch = (address) => {
        if (!isFirst) return fetch(address)
        isFirst = false
        return Promise.reject(new TypeError('network error'))
      }`)
    const key = await generateKey(page, 'used at once')
    assert.equal((await list(key)).status, 200)
    await page.locator('[data-first-request].good').waitFor()
    browsing.assertClean()
  })

  it('finds an animal on a phone by keyboard alone, within a status, without a page wider than the screen', async () => {
    await browsing.petstore.store.pets.create({
      name: 'Schnürli Élodie',
      categoryId: 2n ** 63n - 1n,
      status: 'available',
    })
    const page = await browsing.openSignedIn({ viewport: { width: 360, height: 740 } })
    await page.goto('/animals?status=available')
    await page.keyboard.type('/ELO')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/animals?q=ELO&status=available')
    await page.getByRole('link', { name: 'Schnürli Élodie' }).waitFor()
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360)
    browsing.assertClean()
  })

  it('has the first animal within reach on a phone, with its id and category; the whole row leads to it, and its step can be undone, without a script', async () => {
    const id = await addRex()
    const page = await browsing.openSignedIn({ viewport: { width: 360, height: 740 }, javaScriptEnabled: false })
    await page.goto('/animals')
    const row = page.locator('tbody tr').first()
    assert.ok((await row.boundingBox())!.y <= 220)
    assert.match((await row.innerText()).replaceAll(/\s+/g, ' '), new RegExp(`Available 3 (?:– )*${id} Reserve`))
    await row.getByRole('button', { name: 'Reserve' }).click()
    await page.getByText('is now Reserved').waitFor()
    await page.getByRole('button', { name: 'Undo' }).click()
    await page.getByText('is now Available').waitFor()
    assert.deepEqual(await browsing.petstore.store.pets.get(id), { id, ...rex })
    await row.getByText(String(id), { exact: true }).click({ force: true })
    await page.waitForURL(`**/animals/${id}`)
    await page.goto('/animals')
    await page.getByRole('link', { name: 'History' }).click()
    await page.getByLabel('By').selectOption('You')
    await page.getByRole('button', { name: 'Filter' }).click()
    assert.match(await page.locator('.timeline li').first().innerText(), /Status: Reserved → Available\s+You, /)
    await page.locator('.timeline a').first().click()
    await page.waitForURL(`**/animals/${id}`)
    browsing.assertClean()
  })

  it('sells from a row far down by keyboard, and stays there: the row is marked, with Undo in focus, and nothing else moves', async () => {
    const { pets } = browsing.petstore.store
    await pets.createMany(Array.from({ length: 25 }, () => rex))
    const page = await browsing.openSignedIn({ viewport: { width: 360, height: 740 } })
    await page.goto('/animals')
    const row = page.locator('tbody tr').nth(18)
    const top = async () => Math.round((await row.boundingBox())!.y)
    await row.getByRole('button', { name: 'Sell' }).focus()
    const before = { top: await top(), name: await row.locator('th a').getAttribute('href') }
    const count = Number(await page.locator('[aria-current] .segment-count').innerText())
    await page.keyboard.press('Enter')
    await page.locator('tr.fresh').getByRole('button', { name: 'Undo' }).and(page.locator(':focus')).waitFor()
    assert.equal(await row.locator('th a').getAttribute('href'), before.name)
    assert.match(await row.innerText(), /Sold/)
    assert.equal(await top(), before.top)
    const counted = page.locator('[aria-current] .segment-count', { hasText: String(count - 1) })
    await counted.waitFor()
    await page.getByRole('status').getByText('is now Sold').waitFor()
    // For a moment the new row takes no press.
    await until(async () => {
      await page.keyboard.press('Enter')
      return page.locator('tr.fresh').getByRole('button', { name: 'Reserve' }).isVisible()
    }, 'the step is undone')
    await page.locator('tr.fresh').getByRole('button', { name: 'Reserve' }).and(page.locator(':focus')).waitFor()
    assert.equal(Number(await page.locator('[aria-current] .segment-count').innerText()), count)
    browsing.assertClean()
  })

  it('sells an animal once if its button is pressed twice, and nothing by the Enter key on a tick', async () => {
    const [double, ticked] = [await addRex(), await addRex()]
    const page = await browsing.openSignedIn()
    // For more than half a second the new row takes no press. Here for a minute: a busy machine may press the second time later.
    await page.addInitScript('performance.now = ((now) => () => now() + 60_000)(performance.now.bind(performance))')
    const rowOf = (from: Page, id: bigint) =>
      from.locator('tbody tr', { has: from.locator(`[name=pick][value="${id}"]`) })
    const statusOf = async (id: bigint) => (await browsing.petstore.store.pets.get(id))?.status
    await page.goto('/animals')
    const sell = await rowOf(page, double).getByRole('button', { name: 'Sell' }).boundingBox()
    await page.mouse.click(sell!.x + 5, sell!.y + 5)
    await rowOf(page, double).getByRole('button', { name: 'Undo' }).and(page.locator(':focus')).waitFor()
    await page.mouse.click(sell!.x + 5, sell!.y + 5)
    await page.keyboard.press('Enter')
    for (const javaScriptEnabled of [true, false]) {
      const visitor = await browsing.openSignedIn({ javaScriptEnabled })
      await visitor.goto('/animals')
      const tick = rowOf(visitor, ticked).locator('[name=pick]')
      await tick.focus()
      await visitor.keyboard.press('Space')
      await visitor.keyboard.press('Enter')
      assert.equal(await tick.isChecked(), true)
      if (!javaScriptEnabled) continue
      await visitor.locator('.many').getByRole('button', { name: 'Reserve' }).click()
      await visitor.getByText('1 animal changed to Reserved.').waitFor()
    }
    assert.deepEqual([await statusOf(double), await statusOf(ticked)], ['sold', 'pending'])
    browsing.assertClean()
  })

  it('stays on the list if a step or its answer does not get through, says so, and takes the step when pressed again', async () => {
    const id = await addRex()
    const page = await browsing.openSignedIn({ viewport: { width: 360, height: 740 } })
    await page.goto('/animals')
    // The browser reports the answer that is cut, which is no fault of the page.
    page.removeAllListeners('console')
    const cutting = createServer((socket) => {
      socket.once('data', () =>
        socket.end('HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 99\r\n\r\n<p>'),
      )
    })
    await once(cutting.listen(0, '127.0.0.1'), 'listening')
    cutting.unref()
    const { port } = cutting.address() as AddressInfo
    const row = page.locator('tbody tr').first()
    for (const fail of [
      (route: Route) => route.abort('aborted'),
      (route: Route) => route.continue({ url: `http://127.0.0.1:${port}/` }),
    ]) {
      await page.route(`**/animals/${id}/status`, fail)
      await row.getByRole('button', { name: 'Sell' }).click()
      await row.getByRole('alert').getByText('No connection. Try again.').waitFor()
      await row.getByRole('alert').evaluate('(element) => element.remove()')
      await page.unroute(`**/animals/${id}/status`)
    }
    assert.equal((await browsing.petstore.store.pets.get(id))?.status, 'available')
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360)
    await row.getByRole('button', { name: 'Sell' }).click()
    await page.locator('tr.fresh').getByRole('button', { name: 'Undo' }).waitFor()
    assert.equal((await browsing.petstore.store.pets.get(id))?.status, 'sold')
  })

  it('leads from a row to what a colleague did first, and to the sign-in where the session has ended', async () => {
    const id = await addRex()
    const page = await browsing.openSignedIn()
    await page.goto('/animals')
    const press = (name: string) => page.locator('tbody tr').first().getByRole('button', { name }).click()
    await changeRex(id, { status: 'pending' })
    await press('Reserve')
    await page.waitForURL(`**/animals/${id}?overtaken=*`)
    await page.getByText('Nothing was changed.').waitFor()
    await page.goto('/animals')
    await page.context().clearCookies()
    await press('Sell')
    await page.waitForURL('**/sign-in?*')
    browsing.assertClean()
  })

  it('shows what is stored after the Back button, not what the browser remembers of a form: saving it takes back nothing', async () => {
    const id = await addRex()
    const page = await browsing.openSignedIn()
    await page.goto(`/animals/${id}`)
    await page.goto('/animals')
    await changeRex(id, { status: 'sold' })
    await page.goBack()
    await page.getByText('Edit', { exact: true }).click()
    await page.getByLabel('Name').fill('Rexo')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.waitForURL(`**/animals/${id}?changed=yes`)
    const stored = await browsing.petstore.store.pets.get(id)
    assert.deepEqual(stored, { id, ...rex, name: 'Rexo', status: 'sold' })
    browsing.assertClean()
  })

  // What each form says: console/forms.test.ts.
  it('sends what is wrong all the same, tells so beside the field, puts the focus there, and keeps what was typed', async () => {
    const page = await browsing.open()
    await page.goto('/sign-up')
    await page.getByLabel('Your name').fill('Ben')
    await page.getByLabel('Email address').fill('not an address')
    await page.getByLabel('Password').fill('short')
    await page.getByRole('button', { name: 'Create account' }).click()
    await page.locator('#email[aria-invalid="true"]:focus').waitFor()
    await page.locator('#email-problem', { hasText: 'Enter your email address, like maria@shop.com.' }).waitFor()
    assert.equal(await page.getByLabel('Email address').inputValue(), 'not an address')
    const other = await browsing.openSignedIn()
    await other.goto(`/animals/${await addRex()}?edit=yes`)
    await other.getByLabel('Category').fill('9223372036854775808')
    await other.getByRole('button', { name: 'Save' }).click()
    await other.locator('#categoryId[aria-invalid="true"]:focus').waitFor()
    browsing.assertClean()
  })

  it('shows nothing of the account after signing out, not even by the back button', async () => {
    const page = await browsing.openSignedIn()
    await page.goto('/keys')
    await openMenu(page)
    await page.getByRole('link', { name: 'Account' }).click()
    await openMenu(page)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByText('You are signed out').waitFor()
    await page.goBack()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    assert.equal((await page.content()).includes(browsing.petstore.account.email), false)
    browsing.assertClean()
  })

  it('sends a form once, however often its button is pressed', async () => {
    const page = await browsing.openSignedIn()
    await page.goto('/animals/new')
    await page.getByLabel('Name').fill('Double')
    await page.getByLabel('Category').fill('1')
    await page.getByRole('button', { name: 'Add animal' }).dblclick()
    await page.getByRole('link', { name: 'Add another' }).waitFor()
    assert.equal(await page.getByRole('row', { name: 'Double' }).count(), 1)
    browsing.assertClean()
  })

  it('lets a visitor who goes back to a form send it again', async () => {
    const page = await browsing.openSignedIn()
    await page.goto('/categories/new')
    await page.getByLabel('Name').fill('Back again')
    const button = page.getByRole('button', { name: 'Add category' })
    // As if the visitor had left the page before the form arrived anywhere.
    await page.evaluate(
      'document.querySelector("form.form").addEventListener("submit", (event) => event.preventDefault(), { once: true })',
    )
    await button.click()
    await page.evaluate('dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true }))')
    await button.click()
    await page.getByText('Saved: Back again').waitFor()
    browsing.assertClean()
  })

  it('selects the text where the browser refuses to copy it', async () => {
    const page = await browsing.openSignedIn()
    await page.addInitScript('navigator.clipboard.writeText = () => Promise.reject(new Error("refused"))')
    const key = await generateKey(page, 'by hand')
    const selected = async () => String(await page.evaluate('getSelection().toString()'))
    await page.getByRole('button', { name: 'Copy the key' }).click()
    await until(async () => (await selected()) === key, 'the key is selected')
    await page.getByRole('button', { name: 'Copy the line' }).last().click()
    await until(async () => /^curl .*Bearer pets_test_\w+"$/s.test(await selected()), 'the line is selected')
    browsing.assertClean()
  })

  it('can be used with the keyboard alone, and shows where one is', async () => {
    const page = await browsing.open()
    await page.goto('/')
    await page.keyboard.press('Tab')
    assert.equal(await page.locator(':focus').innerText(), 'Skip to the content')
    await tabTo(page, 'Create account')
    await page.keyboard.press('Enter')
    await page.waitForURL('/sign-up')
    // The browser gives a field the focus only when it draws the page.
    await page.locator('[name=name]:focus').waitFor()
    await page.keyboard.type('Keyboard')
    await page.keyboard.press('Tab')
    await page.keyboard.type('keyboard@example.com')
    await page.keyboard.press('Tab')
    await page.keyboard.type(PASSWORD)
    await page.keyboard.press('Enter')
    await page.waitForURL('/animals')
    await tabTo(page, 'Developers')
    await page.keyboard.press('Enter')
    await tabTo(page, 'Keys')
    await page.keyboard.press('Enter')
    await page.waitForURL('/keys')
    await tabTo(page, 'Generate a key')
    await page.keyboard.press('Enter')
    await page.waitForURL('/keys/new')
    await page.locator('[name=name]:focus').waitFor()
    await page.keyboard.type('typed')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Your new key' }).waitFor()
    await tabTo(page, 'I’ve saved this key')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Keys', exact: true }).waitFor()
    await tabTo(page, 'Revoke typed')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Revoke typed?' }).waitFor()
    await tabTo(page, 'Revoke key')
    await page.keyboard.press('Enter')
    await page.getByText('The key is revoked').waitFor()
    browsing.assertClean()
  })

  it('shows times relative and local, with the full local time for hover and screen readers; without a script in UTC, said once', async () => {
    const id = await addRex()
    const at = Date.now() - 125 * 60_000
    const changed = { ...event('acct_2'), at }
    await browsing.petstore.store.pets.update(id, rex, { ...rex, status: 'sold' }, changed)
    const zone = { timezoneId: 'Asia/Kolkata', javaScriptEnabled: true }
    const words = (timeZone: string) =>
      new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short', timeZone }).format(at)
    const local = await browsing.openSignedIn(zone)
    await local.goto(`/animals/${id}`)
    const time = local.locator('.timeline time')
    assert.equal(await time.textContent(), `2 hours ago, ${words('Asia/Kolkata')}`)
    assert.equal(await time.getAttribute('title'), words('Asia/Kolkata'))
    const { accounts, account } = browsing.petstore
    await accounts.createKey(account, 'Expires late', Date.UTC(2096, 0, 1, 20), 'console')
    await local.goto('/keys')
    await local.getByRole('row', { name: 'Expires late' }).getByText('2 Jan 2096', { exact: false }).first().waitFor()
    const plain = await browsing.openSignedIn({ ...zone, javaScriptEnabled: false })
    await plain.goto(`/animals/${id}`)
    assert.equal(await plain.locator('.timeline time').textContent(), words('UTC'))
    assert.equal((await plain.locator('body').innerText()).split('UTC').length, 2)
    browsing.assertClean()
  })

  it('shows changes under the days of the browser’s time zone; without a script under those of UTC', async () => {
    const at = Date.parse('2026-03-01T18:29:00Z')
    const { store, account } = browsing.petstore
    const id = await addRex()
    for (const minutes of [0, 2])
      await store.accounts.appendEvent({
        ...event(account.id, 'pet.changed'),
        at: at + minutes * 60_000,
        subject: `Rex (${id})`,
        detail: `${minutes} minutes`,
      })
    const zone = { timezoneId: 'Asia/Kolkata' }
    for (const [options, days] of [
      [zone, { '2 March 2026': ['2 minutes'], '1 March 2026': ['0 minutes'] }],
      [{ ...zone, javaScriptEnabled: false }, { '1 March 2026': ['2 minutes', '0 minutes'] }],
    ] as const) {
      const page = await browsing.openSignedIn(options)
      await page.goto('/animals/changes')
      for (const [day, changes] of Object.entries<readonly string[]>(days)) {
        const entries = page.locator('.day', { has: page.getByRole('heading', { name: day }) }).locator('li')
        const seen = (await entries.allInnerTexts()).map((text) => /\d minutes/.exec(text)?.[0])
        assert.deepEqual(seen, changes)
      }
    }
    browsing.assertClean()
  })

  it('lists one of many categories in two presses and one load, or by a few letters', async () => {
    const { store, account } = browsing.petstore
    for (const [nth, name] of ['Geckos', 'Guppies', 'Kühe', 'Koi'].entries())
      await store.categories.save({ number: BigInt(700 + nth), name }, undefined, event(account.id, 'category.added'))
    await store.pets.createMany([{ ...rex, name: 'Moo', categoryId: 702n }])
    const page = await browsing.openSignedIn({ viewport: { width: 360, height: 740 } })
    await page.goto('/animals?status=available')
    const open = page.getByRole('link', { name: /All categories/ })
    await open.click()
    await page.getByRole('dialog').getByRole('link', { name: 'Guppies' }).click()
    await page.waitForURL('/animals?status=available&category=701')
    await page.goto('/animals?status=available')
    await open.press('Enter')
    await page.getByRole('searchbox', { name: 'Find a category' }).and(page.locator(':focus')).waitFor()
    await page.keyboard.type('ku')
    assert.deepEqual(await page.locator('dialog .choices li:visible').allInnerTexts(), ['Kühe'])
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('ArrowUp')
    await page.keyboard.press('Enter')
    await page.waitForURL('/animals?status=available&category=702')
    await page.getByRole('link', { name: 'Moo' }).waitFor()
    browsing.assertClean()
  })

  it('moves all of a category, also those of the next page, by one load and four presses, and back by one Undo', async () => {
    const { store, account } = browsing.petstore
    for (const [number, name] of [
      [77n, 'Geese'],
      [78n, 'Ducks'],
    ] as const)
      await store.categories.save({ number, name }, undefined, event(account.id, 'category.added'))
    await store.pets.createMany(Array.from({ length: 77 }, () => ({ ...rex, categoryId: 77n })))
    const page = await browsing.openSignedIn()
    await page.goto('/animals?category=77')
    let loads = 0
    page.on('load', () => (loads += 1))
    await page.getByRole('checkbox', { name: 'Tick all on this page' }).first().click()
    await page.getByRole('link', { name: 'Select all 77' }).click()
    await page.getByText('77 selected').waitFor()
    assert.equal(await page.locator('tbody :checked').count(), 50)
    await page.getByRole('button', { name: 'Move to…' }).click()
    await page.getByRole('dialog').getByRole('link', { name: 'Ducks' }).click()
    await page.getByText('77 animals changed to Ducks.').waitFor()
    assert.equal(loads, 1)
    const counted = async () => (await store.pets.countByStatus(78n)).available
    assert.equal(await counted(), 77)
    await page.getByRole('button', { name: 'Undo' }).click()
    await page.getByText('77 animals changed back.').waitFor()
    assert.equal(await counted(), 0)
    await page.getByRole('checkbox', { name: 'Tick all on this page' }).first().click()
    await page.getByRole('link', { name: 'Select all 77' }).click()
    await page.locator('tbody [name=pick]').first().click({ force: true })
    await page.getByText('76 selected').waitFor()
    const phone = { viewport: { width: 390, height: 740 }, javaScriptEnabled: false }
    const plain = await browsing.openSignedIn(phone)
    await plain.goto('/animals?category=77')
    await plain.locator('tbody .pick').first().click()
    await plain.locator('#many .pick').click()
    await plain.getByRole('link', { name: 'Select all 77' }).click()
    await plain.getByText('77 selected').waitFor()
    await plain.getByRole('button', { name: 'Sell', exact: true }).dblclick()
    await plain.getByText('77 animals changed to Sold.').waitFor()
    browsing.assertClean()
  })

  it('shows rows and counts as they are when its tab is shown again, with the focus where it was, unless one is ticked', async () => {
    const id = await addRex()
    const page = await browsing.openSignedIn()
    await page.goto('/animals')
    const row = page.locator('tbody tr', { has: page.locator(`[href="/animals/${id}"]`) })
    const showAgain = () => page.evaluate('document.dispatchEvent(new Event("visibilitychange"))')
    await row.getByRole('button', { name: 'Reserve' }).focus()
    const count = Number(await page.locator('[aria-current] .segment-count').innerText())
    await changeRex(id, { status: 'pending' })
    await addRex()
    await showAgain()
    await row.getByRole('button', { name: 'Sell' }).and(page.locator(':focus')).waitFor()
    assert.equal(Number(await page.locator('[aria-current] .segment-count').innerText()), count + 1)
    assert.match(await row.locator('.added-cell').innerText(), /^(?:\d\d:\d\d|\d+ \w+|–)/)
    await row.getByRole('checkbox').check()
    await changeRex(id, { name: 'Renamed' })
    const asked: string[] = []
    page.on('request', (request) => asked.push(request.url()))
    await showAgain()
    await page.getByRole('button', { name: 'Clear' }).click()
    assert.deepEqual([asked, await page.locator('.many').isVisible()], [[], false])
    await page.locator('thead').getByRole('checkbox').check()
    assert.equal(await page.locator('tbody :checked').count(), await page.locator('tbody tr').count())
    await row.getByRole('checkbox').uncheck()
    assert.equal(await page.locator('thead').getByRole('checkbox').isChecked(), false)
    browsing.assertClean()
  })

  it('has keys for the list, which `?` lists and turns off', async () => {
    for (let nth = 0; nth < 3; nth += 1) await addRex()
    const page = await browsing.openSignedIn()
    await page.goto('/animals')
    const rows = page.locator('.animals tbody th a')
    const focused = async () => page.locator(':focus').getAttribute('href')
    for (const [keys, at] of [
      ['j', 0],
      ['jj', 2],
      ['k', 1],
    ] as const) {
      await page.keyboard.type(keys)
      assert.equal(await focused(), await rows.nth(at).getAttribute('href'), keys)
    }
    await page.keyboard.type('?')
    const dialog = page.getByRole('dialog', { name: 'Keys' })
    await dialog.getByText('Add one').waitFor()
    await dialog.getByLabel('Use these keys').uncheck()
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    const before = await focused()
    await page.keyboard.type('jn/')
    assert.equal(await focused(), before)
    await page.keyboard.type('?')
    await dialog.getByLabel('Use these keys').check()
    await dialog.getByRole('button', { name: 'Close' }).click()
    await page.keyboard.type('n')
    await page.waitForURL('**/animals/new')
    browsing.assertClean()
  })

  it('presses no key of the list for who types on while it opens, until a pause', async () => {
    const page = await browsing.openSignedIn()
    await page.addInitScript('Date.now = () => Number(localStorage.getItem("now") ?? 1e12)')
    await page.goto('/animals')
    await page.keyboard.type('/zebra')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/animals?q=zebra*')
    await page.keyboard.type('nn')
    await page.evaluate('localStorage.setItem("now", 1e12 + 500)')
    await page.keyboard.press('/')
    await page.locator('[role=search] input:focus').waitFor()
    assert.equal(new URL(page.url()).pathname, '/animals')
    browsing.assertClean()
  })

  it('has a menu that Escape and a click elsewhere close', async () => {
    const page = await browsing.openSignedIn()
    await page.goto('/animals')
    const signOut = page.getByRole('button', { name: 'Sign out' })
    for (const close of [() => page.keyboard.press('Escape'), () => page.getByRole('heading', { level: 1 }).click()]) {
      await openMenu(page)
      await signOut.waitFor()
      await close()
      await signOut.waitFor({ state: 'hidden' })
    }
    browsing.assertClean()
  })
})

/** Opens the menu that has the visitor's email address. */
function openMenu(page: Page): Promise<void> {
  return page.locator('summary', { hasText: 'Signed in as' }).click()
}

/** Presses Tab until what has these words, or this id, is focused; each stop on the way must be seen. */
async function tabTo(page: Page, target: string): Promise<void> {
  for (let presses = 0; presses < 40; presses += 1) {
    await page.keyboard.press('Tab')
    const [words, id, outline] = (await page.evaluate(
      '[document.activeElement.textContent.trim(), "#" + document.activeElement.id, getComputedStyle(document.activeElement).outlineStyle]',
    )) as [string, string, string]
    assert.notEqual(outline, 'none', `no visible focus on ${words || id}`)
    if (words.replaceAll(/\s+/g, ' ') === target || id === target) return
  }
  assert.fail(`Tab never came to ${target}`)
}
