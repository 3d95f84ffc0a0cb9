/** Light, dark, or as the system has it. */
import { createStore } from "./store.ts";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const KEY = "lockstep-theme";
export const theme = createStore<Theme>(THEMES.find((one) => one === localStorage.getItem(KEY)) ?? "system");

export function setTheme(next: Theme): void {
  localStorage.setItem(KEY, next);
  theme.set(() => next);
  applyTheme();
}

export function applyTheme(): void {
  const now = theme.get();
  if (now === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = now;
}
