// The API reference in a real browser: from here alone, in both colours, and able to send a request.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { Page } from '@playwright/test'
import { describeInBrowser } from './browsing.ts'

const isDark = (page: Page) => page.evaluate('document.body.classList.contains("dark-mode")')

describeInBrowser('the reference in a browser', {}, (browsing) => {
  it('tries an operation with a key that is pasted in, and shows an int64 exactly; in dark where the system is', async () => {
    const { petstore } = browsing
    await petstore.add('{"name": "Exact", "categoryId": 9223372036854775807}')
    const page = await browsing.open({ colorScheme: 'dark' })
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
    assert.equal(await isDark(page), true)
    await page.reload()
    assert.equal(await page.getByPlaceholder('Token').first().inputValue(), '', 'the page keeps no key')
    browsing.assertClean()
  })

  it('has the deprecated operation marked, and leads to error codes and deprecations; in light where the system is', async () => {
    const page = await browsing.open({ colorScheme: 'light' })
    await page.goto('/docs')
    await page.getByText('Get an animal').first().click()
    await page.getByText('Deprecated: to be removed on 5 December 2030').first().waitFor()
    assert.equal(await isDark(page), false)
    await page.getByRole('navigation', { name: 'Reference' }).getByRole('link', { name: 'Error codes' }).click()
    await page.goto('/docs/errors#pet_not_found')
    assert.ok(await page.locator('#pet_not_found').isVisible())
    browsing.assertClean()
  })
})
