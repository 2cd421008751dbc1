# In /etc/nftables.conf, in the chain `input`:
nft add rule inet filter input iifname lan0 tcp dport '{ 53, 80, 443 }' accept
nft add rule inet filter input iifname lan0 udp dport 53 accept
