# iptables -I DOCKER-USER -i lan0 -j ACCEPT
nft insert rule ip filter DOCKER-USER iifname lan0 accept
# iptables -I DOCKER-USER -o lan0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
nft insert rule ip filter DOCKER-USER oifname lan0 ct state related,established accept
