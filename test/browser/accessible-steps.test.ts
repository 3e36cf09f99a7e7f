// What forms and presses lead to is accessible, too: keys, animals, files, people, links and questions.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { AxeResults } from 'axe-core'
import { linkAddress } from '../../src/console/people/link.ts'
import { INVITED, makeAccount } from '../harness/harness.ts'
import { event } from '../harness/databases/sample-rows.ts'
import { check, describeWithSample, OF_A_BATCH, OF_A_KEY, OF_A_PERSON, PROMISE } from './accessible.ts'
import { generateKey } from './browsing.ts'
import { SAMPLE_PASSWORD } from './sample-store.ts'

describeWithSample('what every form leads to', (browsing, sample, openMember) => {
  it(`for who is signed in ${PROMISE}: keys that are made and revoked, a form with problems`, async () => {
    const page = await openMember()
    await generateKey(page, 'a name without any space in it that goes on and on and onandonandonandonandonandonandon')
    await check(page, 'a new key')
    for (const path of OF_A_KEY) {
      await page.goto(path.replace('{id}', sample().keys[0]!.id))
      await check(page, path)
    }
    await page.goto('/animals/new')
    await page.getByRole('button', { name: 'Add animal' }).click()
    await page.getByRole('alert').waitFor()
    await check(page, 'a form with problems')
    browsing.assertClean()
  })

  it(`for managers ${PROMISE}: animals that are ticked`, async () => {
    const page = await openMember()
    await page.goto('/animals')
    await page.locator('.pick').first().click()
    await page.getByRole('checkbox', { name: 'All on this page' }).check()
    assert.equal(await page.getByRole('checkbox', { checked: true }).count(), 51)
    await check(page, 'ticked animals')
    await page.locator('.many summary').click()
    await check(page, 'ticked animals, with the menu')
    // At 200 % a phone has half as many pixels.
    for (const [width, height] of [
      [390, 844],
      [195, 422],
    ] as const) {
      await page.setViewportSize({ width, height })
      assert.equal((await page.locator('.many').boundingBox())!.height, 56, 'the bar is one line')
      const [left, right] = (await page.evaluate(
        `(({ left, right }) => [left, right])(document.querySelector('[name=remove]').getBoundingClientRect())`,
      )) as [number, number]
      assert.ok(left >= 0 && right <= width, `Remove is from ${left} to ${right} of ${width}`)
    }
    await page.getByRole('button', { name: 'Remove…' }).click()
    await page.getByRole('heading', { name: 'Remove 50 animals?' }).waitFor()
    await check(page, 'animals to remove')
    await page.getByRole('link', { name: 'Cancel' }).click()
    await page.waitForURL('/animals')
    browsing.assertClean()
  })

  it(`for managers ${PROMISE}: what was done to an animal`, async () => {
    const page = await openMember()
    await page.goto('/animals')
    await page.locator('.pick').first().click()
    await page.locator('.many').getByRole('button', { name: 'Reserve', exact: true }).click()
    await page.getByRole('button', { name: 'Undo' }).and(page.locator(':focus')).waitFor()
    await check(page, 'animals that were changed')
    await page.getByRole('button', { name: 'Undo' }).click()
    await page.getByText('changed back').waitFor()
    await page.goto(OF_A_BATCH.replace('{id}', new URL(page.url()).searchParams.get('batch')!))
    await check(page, 'a batch')
    browsing.assertClean()
  })

  it(`for managers ${PROMISE}: the menu of the account, and the keys of the list`, async () => {
    const page = await openMember()
    await page.goto('/animals')
    await page.locator('.top > .menu summary').click()
    await check(page, 'the menu of the account')
    await page.setViewportSize({ width: 360, height: 900 })
    const sizes = (await page.evaluate(`axe.run('header', { runOnly: ['target-size'] })`)) as AxeResults
    assert.deepEqual(sizes.violations, [], 'the menu leaves no strip of the navigation to press')
    await page.goto('/animals')
    await page.getByText('Developers').click()
    await check(page, 'the menu for developers')
    await page.goto('/animals')
    await page.locator('.choose').click()
    await page.getByRole('dialog').waitFor()
    await check(page, 'the menu of categories')
    await page.goto('/animals')
    await page.keyboard.press('?')
    await page.getByRole('dialog').waitFor()
    await check(page, 'the keys of the list')
    browsing.assertClean()
  })

  it(`for managers ${PROMISE}: animals that were just added`, async () => {
    const page = await openMember()
    await page.goto('/animals/new')
    await page.getByLabel('Name').fill('w'.repeat(100))
    await page.getByLabel('Category').fill('Cats')
    await page.getByRole('button', { name: 'Add and add another' }).click()
    await page.getByRole('heading', { name: 'Just added' }).waitFor()
    await page.getByLabel('Name').fill('w'.repeat(100))
    await page.getByLabel('Category').fill('Catz')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Create the category “Catz”' }).waitFor()
    await check(page, 'animals that were just added')
    await browsing.petstore.store.accounts.purgeSessions(0, 0, 0)
    await page.getByRole('button', { name: 'Use Cats' }).click()
    await page.getByText('Your session has ended.').waitFor()
    await check(page, 'animals that are not added yet')
    browsing.assertClean()
  })

  it(`for members ${PROMISE}: a file that is brought in`, async () => {
    const page = await openMember()
    await page.goto('/animals/import')
    const [long, wide] = ['w'.repeat(255), 'W'.repeat(255)]
    const rows = ['Ada;Axolotls;;', `${long};Axolotls;${long};1`, `;3;;${wide}`, `${wide};;;`, 'Bob;3;;1', 'Bob;3;;1']
    const buffer = Buffer.from(`Tiername;Tierart;Status;${wide}\n${rows.join('\n')}\n`)
    await page.getByLabel('File').setInputFiles({ name: 'pets.csv', mimeType: 'text/csv', buffer })
    await page.getByRole('button', { name: 'Check the file' }).click()
    await page.getByText('Another row names the columns').click()
    await check(page, 'the columns of a file')
    await page.getByRole('button', { name: 'Check the rows' }).click()
    await page.getByRole('textbox', { name: 'Name, line 4' }).fill('Bob')
    await page.getByRole('button', { name: 'Save and check again' }).click()
    await page.getByText('Saved, and checked again').waitFor()
    await check(page, 'a file')
    await page.getByRole('button', { name: /^Add \d+ animals$/ }).click()
    await page.getByText('They are not added again').waitFor()
    await check(page, 'a file that was added')
    browsing.assertClean()
  })

  it(`for managers ${PROMISE}: a person, and links for them`, async () => {
    const person = await makeAccount(browsing.petstore, `${'long-'.repeat(20)}@example.com`)
    const page = await openMember()
    for (const path of OF_A_PERSON) {
      await page.goto(path.replace('{id}', person.id))
      await check(page, path)
    }
    await page.getByRole('button', { name: 'Make a link' }).click()
    await page.getByRole('heading', { name: 'New password for' }).waitFor()
    await check(page, 'a new link')
    await browsing.petstore.accounts.createKey(person, 'k'.repeat(100), undefined, 'console')
    await browsing.petstore.accounts.setRole(person, 'manager', 'console')
    await browsing.petstore.accounts.makeLink(person, { name: 'w'.repeat(60), role: 'keyless' })
    const name = 'W'.repeat(60)
    assert.equal(await browsing.petstore.accounts.setName(person, name, 'console'), undefined)
    for (const path of ['/people', '/people/keys']) {
      await page.goto(path)
      await page
        .getByText(path === '/people' ? person.email : name)
        .first()
        .waitFor()
      await check(page, `${path} with long addresses`)
    }
    browsing.assertClean()
  })

  for (const [kind, button, isFor] of [
    ['an invitation', 'Create account', () => INVITED],
    ['a new password', 'Set password', () => browsing.petstore.account],
  ] as const)
    it(`for visitors ${PROMISE}: the link for ${kind}, which works`, async () => {
      const page = await browsing.open()
      await page.goto(linkAddress((await browsing.petstore.accounts.makeLink(sample().account, isFor()))!))
      await check(page, kind)
      if (isFor() === INVITED) await page.getByLabel('Email address').fill('invited@example.com')
      await page.getByLabel('assword').fill(SAMPLE_PASSWORD)
      await page.getByRole('button', { name: button }).click()
      await page.waitForURL(isFor() === INVITED ? '/animals' : '/account/name?next=%2Fanimals')
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
