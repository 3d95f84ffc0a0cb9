/** Keys of many kinds, none of them real: put together here, so that no file holds anything that looks like one. */
const text = (length: number, alphabet = "aB3dE5fG7hJ9kL2mN4pQ6rS8tU1vW0xYz"): string =>
  Array.from({ length }, (_, place) => alphabet[(place * 7 + length) % alphabet.length]).join("");
const upper = (length: number) => text(length, "A2B3C4D5E6F7GHIJKLMNOPQRSTUVWXYZ");
const hex = (length: number) => text(length, "0123456789abcdef");

export const SHAPES: { readonly [name: string]: string } = {
  "GitHub, personal": `ghp_${text(36)}`,
  "GitHub, OAuth": `gho_${text(36)}`,
  "GitHub, server": `ghs_${text(36)}`,
  "GitHub, user": `ghu_${text(36)}`,
  "GitHub, refresh": `ghr_${text(76)}`,
  "GitHub, fine-grained": `github_pat_${text(22)}_${text(59)}`,
  "AWS, long": `AKIA${upper(16)}`,
  "AWS, session": `ASIA${upper(16)}`,
  "Slack, bot": `xoxb-${text(12, "0123456789")}-${text(24)}`,
  "Slack, user": `xoxp-${text(12, "0123456789")}-${text(24)}`,
  "Slack, app": `xapp-1-${text(30)}`,
  OpenAI: `sk-${text(48)}`,
  "OpenAI, project": `sk-proj-${text(30)}-${text(30)}_${text(12)}`,
  Anthropic: `sk-ant-api03-${text(60)}-${text(20)}AA`,
  Google: `AIza${text(35)}`,
  "Google, OAuth": `ya29.${text(60)}`,
  npm: `npm_${text(36)}`,
  GitLab: `glpat-${text(20)}`,
  JWT: `eyJ${text(30)}.eyJ${text(60)}.${text(43)}`,
  PyPI: `pypi-AgE${text(120)}`,
  Stripe: `sk_live_${text(24)}`,
  SendGrid: `SG.${text(22)}.${text(43)}`,
  Twilio: `SK${hex(32)}`,
  Telegram: `${text(9, "123456789")}:AA${text(33)}`,
  "Hugging Face": `hf_${text(34)}`,
  DigitalOcean: `dop_v1_${hex(64)}`,
  Shopify: `shpat_${hex(32)}`,
  Docker: `dckr_pat_${text(27)}`,
  Vault: `hvs.${text(90)}`,
  Databricks: `dapi${hex(32)}`,
  Linear: `lin_api_${text(40)}`,
  Groq: `gsk_${text(52)}`,
};

/** Where a part of the text is secret, and that part. */
export const CARRIED: readonly (readonly [name: string, before: string, secret: string, after: string])[] = [
  ["a bearer header", "Authorization: Bearer ", text(40), "\n"],
  ["a bearer header in JSON", '{"authorization":"Bearer ', text(40), '"}'],
  ["a basic header", "Authorization: Basic ", `${text(30)}==`, "\r\n"],
  ["a connection string", "postgres://admin:", text(16), "@db.example.com:5432/app"],
  ["an address with a password", "https://bot:", text(20), "@git.example.com/x.git"],
  ["a storage key", "AccountName=x;AccountKey=", `${text(86)}==`, ";EndpointSuffix=y"],
  ["a secret key in a file", "aws_secret_access_key = ", text(40), "\n"],
  ["a secret key in JSON", '"AWS_SECRET_ACCESS_KEY": "', text(40), '"'],
];

const lines = (count: number) => Array.from({ length: count }, (_, n) => text(64 - (n % 2))).join("\n");
const block = (kind: string) => `-----BEGIN ${kind}-----\n${lines(12)}\n-----END ${kind}-----`;
export const BLOCKS: readonly string[] = [
  block("PRIVATE KEY"),
  block("RSA PRIVATE KEY"),
  block("OPENSSH PRIVATE KEY"),
  block("EC PRIVATE KEY"),
  block("ENCRYPTED PRIVATE KEY"),
];
