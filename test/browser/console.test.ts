// The console as people use it, in a real browser.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { Page } from '@playwright/test'
import { until } from '../../assurance/harness/until.ts'
import type { NewPet } from '../../src/contract/pets.ts'
import { PASSWORD } from '../harness.ts'
import { event } from '../sample-rows.ts'
import { describeInBrowser, generateKey, signIn, signUp } from './browsing.ts'

describeInBrowser('the console in a browser', {}, (browsing) => {
  const list = (key: string) =>
    fetch(`${browsing.petstore.url}/v1/pets`, { headers: { Authorization: `Bearer ${key}` } })

  it('leads from nothing to an account, a key, its use, its last use and its end', async () => {
    const page = await browsing.open({ permissions: ['clipboard-read', 'clipboard-write'] })
    await page.goto('/')
    await page.getByRole('main').getByRole('link', { name: 'Create account' }).click()
    await page.getByLabel('Email address').fill('first@example.com')
    await page.getByLabel('Password').fill(PASSWORD)
    await page.getByRole('button', { name: 'Create account' }).click()
    const key = await generateKey(page, 'laptop')

    await page.getByRole('button', { name: 'Copy the key' }).click()
    assert.equal(await page.evaluate('navigator.clipboard.readText()'), key)
    await page.getByRole('button', { name: 'Copy the line' }).last().click()
    const line = String(await page.evaluate('navigator.clipboard.readText()'))
    assert.ok(line.includes(`Bearer ${key}`) && line.includes(`${browsing.petstore.url}/v1/pets`), line)

    assert.equal((await list(key)).status, 200)
    await page.getByRole('link', { name: 'I’ve saved this key' }).click()
    const card = page.getByRole('listitem').filter({ has: page.getByRole('heading', { name: 'laptop' }) })
    assert.match((await card.innerText()).replaceAll(/\s+/g, ' '), /Last used just now .* Calls, 7 days 1/)
    await card.getByRole('link', { name: 'Revoke laptop' }).click()
    await page.getByRole('button', { name: 'Revoke key' }).click()
    await page.getByText('Key revoked').waitFor()
    assert.equal((await list(key)).status, 401)
    browsing.assertClean()
  })

  it('shows a key once: a reload makes no other, and no page shows it again', async () => {
    const page = await browsing.open()
    await signUp(page, 'once@example.com', PASSWORD)
    const key = await generateKey(page, 'shown once')
    await page.reload()
    await page.getByText('This form has already created its key').waitFor()
    assert.equal((await page.content()).includes(key), false)
    assert.equal(await page.getByRole('heading', { name: 'shown once' }).count(), 1)
    assert.equal((await list(key)).status, 200)
    browsing.assertClean()
  })

  it('shows beside a new key that its first request has come, also where a look at the service failed before', async () => {
    const page = await browsing.open()
    await page.addInitScript(`
      const { fetch } = window
      let isFirst = true
      window.fetch = (address) => {
        if (!isFirst) return fetch(address)
        isFirst = false
        return Promise.reject(new TypeError('network error'))
      }`)
    await signUp(page, 'waiting@example.com', PASSWORD)
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
    const page = await browsing.open()
    await page.setViewportSize({ width: 360, height: 740 })
    await signIn(page, browsing.petstore.account.email, PASSWORD)
    await page.goto('/animals?status=available')
    await page.getByRole('searchbox', { name: 'Find an animal' }).focus()
    await page.keyboard.type('ELO')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/animals?q=ELO&status=available')
    await page.getByRole('link', { name: 'Schnürli Élodie' }).waitFor()
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360)
    browsing.assertClean()
  })

  it('asks two people about the field that both changed, by keyboard alone and without a script', async () => {
    const { store, account } = browsing.petstore
    const rex: NewPet = { name: 'Rex\nthe "First"', categoryId: 3n, status: 'available' }
    const created = await store.pets.create(rex)
    assert.ok('pet' in created)
    const { id } = created.pet
    const page = await browsing.open({ javaScriptEnabled: false })
    await signIn(page, account.email, PASSWORD)
    const changeTo = (from: NewPet, to: NewPet) => store.pets.update(id, from, to, event('acct_2', 'pet.changed'))
    await page.goto(`/animals/${id}`)
    await changeTo(rex, { ...rex, categoryId: 7n, status: 'sold' })
    await page.getByLabel('Status').selectOption('pending')
    await page.getByRole('button', { name: 'Save' }).press('Enter')
    const theirs = page.getByRole('group', { name: 'Status' }).getByRole('radio', { name: 'Keep theirs: Sold' })
    await theirs.focus()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.waitForURL(`**/animals/${id}?changed=yes`)
    assert.deepEqual(await store.pets.get(id), { id, ...rex, categoryId: 7n, status: 'pending' })
    browsing.assertClean()
  })

  it('filters and pages through the animals', async () => {
    const newPets = Array.from({ length: 50 }, (_, index): NewPet => ({
      name: `pet ${index}`,
      categoryId: 1n,
      status: index % 2 ? 'sold' : 'pending',
    }))
    await browsing.petstore.store.pets.createMany(newPets)
    const page = await browsing.open()
    await signIn(page, browsing.petstore.account.email, PASSWORD)
    await page.getByRole('link', { name: 'Animals', exact: true }).click()
    await page.waitForURL('**/animals')
    assert.deepEqual(
      (await rows(page)).slice(0, 2).map(([name]) => name),
      ['pet 49', 'pet 48'],
    )
    await page.getByRole('link', { name: /^Sold/ }).click()
    await page.waitForURL('**/animals?status=sold')
    const first = await rows(page)
    await page.getByRole('link', { name: 'Older' }).click()
    await page.getByRole('link', { name: 'Newest' }).waitFor()
    const second = await rows(page)
    assert.deepEqual(
      [...first, ...second].map(([name]) => name),
      newPets
        .filter(({ status }) => status === 'sold')
        .toReversed()
        .map(({ name }) => name),
    )
    assert.ok([...first, ...second].every(([, status]) => status === 'Sold'))
    await page.goBack()
    assert.deepEqual(await rows(page), first)
    browsing.assertClean()
  })

  it('shows what is stored after the Back button, not what the browser remembers of a form: saving it takes back nothing', async () => {
    const { store, account } = browsing.petstore
    const rex: NewPet = { name: 'Rex', categoryId: 3n, status: 'available' }
    const created = await store.pets.create(rex)
    assert.ok('pet' in created)
    const { id } = created.pet
    const page = await browsing.open()
    await signIn(page, account.email, PASSWORD)
    await page.goto(`/animals/${id}`)
    await page.goto('/animals')
    await store.pets.update(id, rex, { ...rex, status: 'sold' }, event('acct_2', 'pet.changed'))
    await page.goBack()
    await page.getByLabel('Name').fill('Rexo')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.waitForURL(`**/animals/${id}?changed=yes`)
    assert.deepEqual(await store.pets.get(id), { id, ...rex, name: 'Rexo', status: 'sold' })

    assert.equal((await browsing.petstore.call('/pets?limit=0')).status, 400)
    await page.goto('/activity')
    await page.getByLabel('Status').selectOption('400')
    await page.goto('/animals')
    await page.goBack()
    assert.equal(await page.getByLabel('Status').inputValue(), '', 'the filter is that of the page')
    browsing.assertClean()
  })

  it('tells beside each field what is wrong, and keeps what was typed', async () => {
    const page = await browsing.open()
    await page.goto('/sign-up')
    await page.getByLabel('Email address').fill('not an address')
    await page.getByLabel('Password').fill('short')
    await page.getByRole('button', { name: 'Create account' }).click()
    await problem(page, 'Email address', /must have the form name@host/)
    assert.equal(await page.getByLabel('Email address').inputValue(), 'not an address')
    await page.getByLabel('Email address').fill('forms@example.com')
    await page.getByLabel('Password').fill('password1234')
    await page.getByRole('button', { name: 'Create account' }).click()
    await problem(page, 'Password', /one of the most common/)
    await page.getByLabel('Password').fill(PASSWORD)
    await page.getByRole('button', { name: 'Create account' }).click()
    await page.waitForURL('/keys')

    await page.getByLabel('Name').fill(' ')
    await page.getByRole('button', { name: 'Generate key' }).click()
    await problem(page, 'Name', /1 to 100 printable characters/)

    await page.goto('/animals/new')
    await page.getByLabel('Name').fill('🐢 <b>Shelly</b>')
    await page.getByLabel('Category').fill('9223372036854775808')
    await page.getByRole('button', { name: 'Add animal' }).click()
    await problem(page, 'Category', /from -9223372036854775808 to 9223372036854775807/)
    assert.equal(await page.getByLabel('Name').inputValue(), '🐢 <b>Shelly</b>')
    await page.getByLabel('Category').fill('9223372036854775807')
    await page.getByRole('button', { name: 'Add animal' }).click()
    await page.getByText('Add another').waitFor()
    assert.deepEqual((await rows(page))[0]?.slice(0, 3), ['🐢 <b>Shelly</b>', 'Available', '9223372036854775807'])

    await page.goto('/account')
    await page.getByLabel('Current password').fill('not my password')
    await page.getByLabel('New password').fill('another long one')
    await page.getByRole('button', { name: 'Change password' }).click()
    await problem(page, 'Current password', /is wrong/)

    await page.goto('/account/delete')
    await page.getByRole('button', { name: 'Delete account' }).click()
    await problem(page, 'Current password, to confirm', /is wrong/)
    browsing.assertClean()
  })

  it('shows nothing of the account after signing out, not even by the back button', async () => {
    const page = await browsing.open()
    await signUp(page, 'leaving@example.com', PASSWORD)
    await page.getByRole('link', { name: 'Account' }).click()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByText('You are signed out').waitFor()
    await page.goBack()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    assert.equal((await page.content()).includes('leaving@example.com'), false)
    browsing.assertClean()
  })

  it('answers a form of another tab, from before signing in, with a way on', async () => {
    const page = await browsing.open()
    await page.goto('/sign-in')
    const other = await page.context().newPage()
    await signIn(other, browsing.petstore.account.email, PASSWORD)
    await page.getByLabel('Email address').fill('whoever@example.com')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { name: 'This form is out of date' }).waitFor()
    await page.getByRole('link', { name: 'Go to your keys' }).click()
    await page.waitForURL('/keys')
    browsing.assertClean()
  })

  it('sends a form once, however often its button is pressed', async () => {
    const page = await browsing.open()
    await signIn(page, browsing.petstore.account.email, PASSWORD)
    await page.goto('/animals/new')
    await page.getByLabel('Name').fill('Double')
    await page.getByLabel('Category').fill('1')
    await page.getByRole('button', { name: 'Add animal' }).dblclick()
    await page.getByText('Add another').waitFor()
    assert.equal((await rows(page)).filter(([name]) => name === 'Double').length, 1)
    browsing.assertClean()
  })

  it('lets a visitor who goes back to a form send it again', async () => {
    const page = await browsing.open()
    await signIn(page, browsing.petstore.account.email, PASSWORD)
    await page.goto('/animals/new')
    await page.getByLabel('Name').fill('Back again')
    await page.getByLabel('Category').fill('1')
    const button = page.getByRole('button', { name: 'Add animal' })
    // As if the visitor had left the page before the form arrived anywhere.
    await page.evaluate(
      'document.querySelector("form.form").addEventListener("submit", (event) => event.preventDefault(), { once: true })',
    )
    await button.click()
    await page.evaluate('dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true }))')
    await button.click()
    await page.getByText('Add another').waitFor()
    browsing.assertClean()
  })

  it('puts the focus on the first field with a problem', async () => {
    const page = await browsing.open()
    await signIn(page, browsing.petstore.account.email, PASSWORD)
    await page.goto('/animals/new')
    await page.getByLabel('Name').fill('Rex')
    await page.getByRole('button', { name: 'Add animal' }).click()
    await page.locator('#categoryId:focus').waitFor()
    browsing.assertClean()
  })

  it('selects the text where the browser refuses to copy it', async () => {
    const page = await browsing.open()
    await page.addInitScript('navigator.clipboard.writeText = () => Promise.reject(new Error("refused"))')
    await signUp(page, 'by-hand@example.com', PASSWORD)
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
    await tabTo(page, '#email')
    await page.keyboard.type('keyboard@example.com')
    await page.keyboard.press('Tab')
    await page.keyboard.type(PASSWORD)
    await page.keyboard.press('Enter')
    await page.waitForURL('/keys')
    await tabTo(page, '#name')
    await page.keyboard.type('typed')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Your new key' }).waitFor()
    await tabTo(page, 'I’ve saved this key')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Generate a key' }).waitFor()
    await tabTo(page, 'Revoke typed')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Revoke typed?' }).waitFor()
    await tabTo(page, 'Revoke key')
    await page.keyboard.press('Enter')
    await page.getByText('Key revoked').waitFor()
    browsing.assertClean()
  })

  it('works without JavaScript', async () => {
    const page = await browsing.open({ javaScriptEnabled: false })
    await signUp(page, 'plain@example.com', PASSWORD)
    const key = await generateKey(page, 'plain')
    assert.equal((await list(key)).status, 200)
    assert.equal(await page.getByRole('button', { name: 'Copy' }).count(), 0)
    await page.getByRole('link', { name: 'I’ve saved this key' }).click()
    await page.getByRole('link', { name: 'Revoke plain' }).click()
    await page.getByRole('button', { name: 'Revoke key' }).click()
    await page.getByText('Key revoked').waitFor()
    await page.goto('/animals/new')
    await page.getByLabel('Name').fill('Plain')
    await page.getByLabel('Category').fill('2')
    await page.getByRole('button', { name: 'Add animal' }).click()
    await page.getByText('Add another').waitFor()
    await page.goto('/docs')
    await page.getByText('The interactive reference needs JavaScript').waitFor()
    browsing.assertClean()
  })
})

/** The rows of the page's table, a text a cell. */
async function rows(page: Page): Promise<string[][]> {
  const lines = await page.locator('tbody tr').all()
  return Promise.all(lines.map((line) => line.locator('th, td').allInnerTexts()))
}

/** The field is marked wrong, and what is said of it is tied to it. */
async function problem(page: Page, label: string, expected: RegExp): Promise<void> {
  const field = page.getByLabel(label)
  await page.locator('[aria-invalid="true"]').first().waitFor()
  assert.equal(await field.getAttribute('aria-invalid'), 'true', label)
  const ids = (await field.getAttribute('aria-describedby')) ?? ''
  const told = await Promise.all(ids.split(' ').map((id) => page.locator(`#${id}`).innerText()))
  assert.match(told.join(' '), expected)
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
