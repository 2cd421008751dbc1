# ufw allow in on lan0 to any port 80,443 proto tcp
nft add rule ip filter ufw-user-input iifname lan0 tcp dport '{ 80, 443 }' accept
# ufw allow in on lan0 to any port 53
nft add rule ip filter ufw-user-input iifname lan0 tcp dport 53 accept
nft add rule ip filter ufw-user-input iifname lan0 udp dport 53 accept
# ufw route allow in on lan0
nft add rule ip filter ufw-user-forward iifname lan0 accept
