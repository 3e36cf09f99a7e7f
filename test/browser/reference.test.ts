// The API reference in a real browser: from here alone, in both colours, and able to send a request.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { describeInBrowser } from './browsing.ts'

describeInBrowser('the reference in a browser', {}, (browsing) => {
  it('tries an operation with a key that is pasted in, and shows an int64 exactly', async () => {
    const { petstore } = browsing
    await petstore.add('{"name": "Exact", "categoryId": 9223372036854775807}')
    const page = await browsing.open()
    await page.goto('/docs')
    await page.getByPlaceholder('Token').first().fill(petstore.key)
    await page
      .getByRole('button', { name: /Test Request.*get \/pets/s })
      .first()
      .click()
    const answered = page.waitForResponse((response) => response.url().startsWith(`${petstore.url}/v1/pets`))
    await page
      .getByRole('button', { name: /^Send.*request to/s })
      .first()
      .click()
    const response = await answered
    assert.equal(response.status(), 200)
    assert.equal(response.url(), `${petstore.url}/v1/pets`)
    await page.getByText('9223372036854775807').first().waitFor()
    await page.reload()
    assert.equal(await page.getByPlaceholder('Token').first().inputValue(), '', 'the page keeps no key')
    browsing.assertClean()
  })

  it('follows the colours of the system', async () => {
    for (const colorScheme of ['light', 'dark'] as const) {
      const page = await browsing.open({ colorScheme })
      await page.goto('/docs')
      await page.getByRole('heading', { name: 'List animals' }).first().waitFor()
      assert.equal(await page.evaluate('document.body.classList.contains("dark-mode")'), colorScheme === 'dark')
    }
    browsing.assertClean()
  })

  it('has the deprecated operation marked, and leads to error codes and deprecations', async () => {
    const page = await browsing.open()
    await page.goto('/docs')
    await page.getByText('Get an animal').first().click()
    await page.getByText('Deprecated: to be removed on 5 December 2030').first().waitFor()
    await page.getByRole('navigation', { name: 'Reference' }).getByRole('link', { name: 'Error codes' }).click()
    await page.goto('/docs/errors#pet_not_found')
    assert.ok(await page.locator('#pet_not_found').isVisible())
    browsing.assertClean()
  })
})
