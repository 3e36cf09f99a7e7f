import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { html, isolated, withVisibleControls } from './html.ts'

describe('HTML of ours', () => {
  it('escapes what is put into it, in text and in attributes', () => {
    const name = `<script>alert("1")</script>&'`
    assert.equal(html`<b title="${name}">${name}</b>`.text.includes('<script>'), false)
    assert.equal(html`<b>${`<&>"'`}</b>`.text, '<b>&lt;&amp;&gt;&quot;&#39;</b>')
  })

  it('keeps HTML that it made itself, alone or in a list', () => {
    const items = ['a', '<'].map((text) => html`<li>${text}</li>`)
    assert.equal(html`<ul>${items}</ul>`.text, '<ul><li>a</li><li>&lt;</li></ul>')
  })

  it('isolates what somebody typed, and shows the characters that turn the text around', () => {
    assert.equal(isolated('<שלום>').text, '<bdi>&lt;שלום&gt;</bdi>')
    assert.equal(
      isolated('a\u202Eb\u2069').text,
      '<bdi>a<span class="control">U+202E</span>b<span class="control">U+2069</span></bdi>',
    )
    assert.equal(withVisibleControls('\u061Ca\u200F'), '[U+061C]a[U+200F]')
    assert.equal(isolated('🐈‍⬛').text, '<bdi>🐈‍⬛</bdi>')
  })

  it('prints numbers exactly and leaves nothing for what is not there', () => {
    assert.equal(html`${9223372036854775807n}|${0}|${undefined}|${false}`.text, '9223372036854775807|0||')
  })
})
