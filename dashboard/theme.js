// Light or dark: what was chosen here before, else what the system prefers. Not a module: modules run after the first
// paint, and at night a white flash is one too many.
(() => {
  const KEY = 'windrow.theme'
  const root = document.documentElement
  const systemIsDark = matchMedia('(prefers-color-scheme: dark)')
  let chosen = null
  // Storage may be forbidden; then the choice lasts as long as the page.
  try { chosen = localStorage.getItem(KEY) } catch { /* nothing is remembered */ }

  const other = () => (root.dataset.theme === 'dark' ? 'light' : 'dark')
  function apply() {
    root.dataset.theme = ['dark', 'light'].includes(chosen) ? chosen : systemIsDark.matches ? 'dark' : 'light'
    const button = document.getElementById('theme')
    if (button) button.textContent = other() === 'dark' ? 'Dark' : 'Light'
    document.dispatchEvent(new Event('themechange'))
  }
  function toggle() {
    chosen = other()
    try { localStorage.setItem(KEY, chosen) } catch { /* nothing is remembered */ }
    apply()
  }

  apply()
  systemIsDark.addEventListener('change', apply)
  document.addEventListener('DOMContentLoaded', () => {
    apply()
    document.getElementById('theme').addEventListener('click', toggle)
  })
})()
